// deadline: 180 s
// needs: systemd, control plane
/** What the agent tells the API server: the rule as a table, and the real thing with exactly the rights of the charts. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { PullwrightError } from '../../runtime/core/errors.ts';
import { AGENT_WORDS } from '../../runtime/global-pull-secret/agent/agent.ts';
import { eventOf, nodeStatus } from '../../runtime/node/report.ts';
import type { NodeEvent, NodeState } from '../../runtime/node/task.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import { agentAccount } from '../support/agent-plane.ts';
import { NEW, OLD, settled, startNode } from '../support/agent-scene.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { until } from '../support/systemd.ts';

const STATUSES = '/apis/pullwright.dev/v1alpha1/namespaces/kube-system/pullstatuses';

const STATES: readonly (readonly [NodeState, readonly string[]])[] = [
  [{ ready: true, reason: 'InSync', message: 'm' }, ['Ready=True']],
  [{ ready: false, reason: 'Spread', message: 'm', busy: true }, ['Ready=False', 'Reconciling=True']],
  [{ ready: false, reason: 'BreakerOpen', message: 'm' }, ['Ready=False', 'Stalled=True']],
];
for (const [state, wanted] of STATES)
  test(`state ${state.reason} becomes ${wanted.join(', ')}`, () => {
    const { object, status } = nodeStatus(
      AGENT_WORDS,
      { name: 'a', uid: 'u' },
      state,
      undefined,
      new Date(0),
    );
    assert.equal(object.metadata.name, 'node-a');
    assert.deepEqual(object.metadata['ownerReferences'], [
      { apiVersion: 'v1', kind: 'Node', name: 'a', uid: 'u' },
    ]);
    const conditions = status['conditions'] as { type: string; status: string; reason: string }[];
    assert.deepEqual(
      conditions.map((one) => `${one.type}=${one.status}`),
      wanted,
    );
    assert.ok(conditions.every(({ reason }) => reason === state.reason));
  });

const error = new PullwrightError('no', { code: 'X' });
const EVENTS: readonly (readonly [NodeEvent, string | undefined])[] = [
  [{ event: 'written', file: '/f', from: 'global', entries: 2, foreign: 0 }, 'Normal PullSecretWritten'],
  [{ event: 'restarted', unit: 'k', attempt: 1, ms: 5, byUs: true }, 'Normal KubeletRestarted'],
  [{ event: 'restart-failed', unit: 'k', attempt: 2, ms: 5, error }, 'Warning KubeletRestartFailed'],
  [{ event: 'rolled-back', file: '/f', to: 'saved' }, 'Warning PullSecretRolledBack'],
  [{ event: 'restarting', unit: 'k', attempt: 1 }, undefined],
  [{ event: 'swept', files: 1 }, undefined],
];
for (const [happened, wanted] of EVENTS)
  test(`${happened.event} is ${wanted ?? 'no Event'}`, () => {
    const said = eventOf(AGENT_WORDS, happened);
    assert.equal(said === undefined ? undefined : `${said.type} ${said.reason}`, wanted);
  });

test('an open breaker is an Event, other states are none', () => {
  assert.deepEqual(
    STATES.map(([state]) => AGENT_WORDS.eventOfState(state)?.reason),
    [undefined, undefined, 'BreakerOpen'],
  );
});
const plane = await controlPlane({ crds: ['pullstatuses.pullwright.dev'] });
const { flag, env } = await agentAccount(plane, { report: true });
const node = await startNode();
node.original.swap(NEW);
const agent = node.agent(['--node-name=worker-1', '--report', flag], env);

test('without its Node there is no report, and the work is done all the same', async () => {
  await settled(node, agent, NEW, 30_000);
  await until('a line says so', () => /Node .*worker-1.* not found/.test(agent.text()));
});

test('the next change is reported: a PullStatus that the Node owns, and Events on it', async () => {
  const { metadata } = await plane.apply(meta('v1 Node', { name: 'worker-1' }));
  node.original.swap(OLD);
  await settled(node, agent, OLD, 30_000);
  assert.equal(readFileSync(node.machine.config, 'utf8'), OLD);
  const path = `${STATUSES}/node-worker-1`;
  const text = await eventually(async () => {
    const status = JSON.stringify((await plane.client.request('GET', path)).body);
    assert.match(status, /"InSync"/, agent.text());
    return status;
  });
  assert.match(text, /"sourceDigest":"[0-9a-f]{64}"/, 'what the reconciler compares');
  assert.match(text, /"pullwright\.dev\/reports":"node"/, 'the label by which it finds it');
  assert.ok(text.includes(String((metadata as { uid?: string }).uid)), text);
  const { body } = await plane.client.request('GET', '/apis/events.k8s.io/v1/namespaces/default/events');
  const reasons = (body as { items: { reason: string; regarding: { name: string } }[] }).items
    .filter(({ regarding }) => regarding.name === 'worker-1')
    .map(({ reason }) => reason);
  for (const reason of ['PullSecretWritten', 'KubeletRestarted'])
    assert.ok(reasons.includes(reason), `${reason} ${reasons.join()} ${agent.text()}`);
});

test('it stops when told to', async () => {
  assert.equal((await agent.stop()).code, 0);
});

test.lastly('everything stops', () => node.stop());
