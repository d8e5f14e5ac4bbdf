/** The command line that the charts render is one that the agent understands, whatever the options. */
import assert from 'node:assert/strict';
import { agentOptions } from '../../runtime/global-pull-secret/agent/command.ts';
import { agentCommand } from '../../runtime/global-pull-secret/daemon-set.ts';
import { test } from '../support/suite.ts';

test('the least and the most that can be said', () => {
  const [, name, ...least] = agentCommand({ image: 'i' });
  assert.equal(name, 'agent');
  const flags = agentOptions(least, { NODE_NAME: 'worker-1' });
  assert.deepEqual(
    [flags.healthPort, flags.restart, flags.foreign, flags.windowMs, flags.nodeName],
    [947, 'on-change', 'drop', 'auto', 'worker-1'],
  );
  const [, , ...most] = agentCommand({
    image: 'i',
    foreign: 'keep',
    restart: 'on-removal',
    restartWindow: '90s',
    healthPort: 1234,
    logLevel: 'debug',
    janitor: true,
    report: false,
    watch: false,
  });
  const all = agentOptions(most, {});
  assert.deepEqual([flags.report, all.report], [true, false]);
  assert.deepEqual([flags.watch, all.watch], [true, false]);
  assert.deepEqual(
    [all.healthPort, all.restart, all.foreign, all.windowMs, all.logLevel, all.janitorFolder],
    [1234, 'on-removal', 'keep', 90_000, 'debug', '/etc/crio/auth'],
  );
});
