/** Every block of the steps for disconnected clusters that needs nothing but files, run as it stands, in the order of the page. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { COMMANDS } from '../../runtime/commands/table.ts';
import { docBlocks } from '../support/doc-blocks.ts';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';

const test = suite('docs/registry-overrides.md, disconnected clusters');
const root = new URL('../..', import.meta.url).pathname;
const blocks = docBlocks('docs/registry-overrides.md').filter(({ heading }) => /^\d\. /.test(heading));
const work = mkdtempSync(join(tmpdir(), 'pullwright-disconnected-'));
process.once('exit', () => rmSync(work, { recursive: true, force: true }));

test('only what needs a registry or a cluster is left out', () => {
  assert.deepEqual(
    blocks.flatMap(({ skipped }) => skipped ?? []),
    ['needs a registry', 'needs a cluster', 'needs a cluster', 'needs a cluster'],
  );
});

test('the commands do what they say', async () => {
  const bin = join(work, '.bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'pullwright'), `#!/bin/sh\nexec "${process.execPath}" "${root}main.ts" "$@"\n`);
  chmodSync(join(bin, 'pullwright'), 0o755);
  const said: string[] = [];
  for (const { language, text: body, skipped } of blocks) {
    if (language === 'yaml') {
      const [, name = ''] = /^# (\S+)\n/.exec(body) ?? [];
      assert.notEqual(name, '', body);
      mkdirSync(join(work, dirname(name)), { recursive: true });
      writeFileSync(join(work, name), body);
    } else if (skipped === undefined) {
      const env = { PATH: `${bin}:/usr/bin:/bin`, HOME: work };
      const ran = await runProcess(['bash', '-euo', 'pipefail', '-c', body], {
        cwd: work,
        deadlineMs: 90_000,
        env,
      });
      assert.equal(ran.code, 0, `${body}\n${ran.stdout}${ran.stderr}`);
      said.push(ran.stdout);
    }
  }
  const all = said.join('\n');
  assert.match(all, /1 {2}mirror\.example\.com:8443\/openshift\/release@sha256:1{64}/);
  assert.match(all, /1 {2}mirror\.example\.com:8443\/redhat\/redhat-operator-index:v4\.20/);
  assert.match(
    all,
    /in use 1 image: 1 changes, 0 lose their last place, 0 gain a mirror without a credential/,
  );
});

test('flags of the commands that are not run exist', async () => {
  for (const { text } of blocks.filter(({ language }) => language === 'sh'))
    for (const [, name = '', rest = ''] of text.matchAll(/^pullwright (\S+)(.*)$/gm)) {
      const entry = COMMANDS[name];
      assert.ok(entry !== undefined, name);
      const { flags } = await (await entry.load()).spec();
      for (const [flag] of rest.matchAll(/--[a-z-]+/g))
        assert.ok(Object.hasOwn(flags, flag.slice(2)), `${name} ${flag}`);
    }
});

test.run();
