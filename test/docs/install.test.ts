// deadline: 240 s
/** Every command block of docs/install.md, run as it stands, on a real API server. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { controlPlaneBinaries } from '../control-plane/build.ts';
import { missingControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { docBlocks } from '../support/doc-blocks.ts';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';

const test = suite('docs/install.md');
const root = new URL('../..', import.meta.url).pathname;
const missing = missingControlPlane();

const blocks = docBlocks('docs/install.md');

test('every block says its language, and only what needs others is left out', () => {
  assert.ok(blocks.length > 10);
  for (const { language } of blocks) assert.ok(['json', 'sh', 'yaml'].includes(language), language);
  assert.deepEqual(
    blocks.flatMap(({ skipped }) => skipped ?? []),
    [
      'writes to /usr/local/bin',
      'needs a release',
      'needs a registry',
      'needs a release and its key',
      'needs a registry',
      'belongs to nodes',
    ],
  );
});

if (missing !== undefined) test.skip('the commands', missing);
else {
  const plane = await startControlPlane();
  const work = mkdtempSync(join(tmpdir(), 'pullwright-install-'));
  const bin = join(work, '.bin');

  test('the commands do what they say, in the order of the page', async () => {
    mkdirSync(bin);
    writeFileSync(join(work, 'password'), 'a password of the test');
    const { kubectl } = await controlPlaneBinaries();
    symlinkSync(kubectl, join(bin, 'kubectl'));
    writeFileSync(join(bin, 'pullwright'), `#!/bin/sh\nexec "${process.execPath}" "${root}main.ts" "$@"\n`);
    chmodSync(join(bin, 'pullwright'), 0o755);
    for (const block of blocks) {
      if (block.language === 'yaml') save(block.text);
      else if (block.skipped === undefined) await run(block.text);
    }
  });

  function save(yaml: string): void {
    const [, name = ''] = /^# (\S+)\n/.exec(yaml) ?? [];
    assert.notEqual(name, '', `a YAML block without a file name:\n${yaml}`);
    mkdirSync(join(work, dirname(name)), { recursive: true });
    writeFileSync(join(work, name), yaml);
  }

  async function run(commands: string): Promise<void> {
    const ran = await runProcess(['bash', '-euo', 'pipefail', '-c', commands], {
      cwd: work,
      deadlineMs: 90_000,
      env: {
        PATH: `${bin}:/usr/bin:/bin`,
        HOME: work,
        KUBECONFIG: plane.kubeconfig,
      },
    });
    assert.equal(ran.code, 0, `${commands}\n${ran.stdout.slice(-500)}\n${ran.stderr.slice(-1500)}`);
  }

  test('the overlay was applied', async () => {
    const deployment = await plane.get({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'pullwright-reconciler', namespace: 'pullwright-system' },
    });
    assert.equal(deployment?.['spec'].replicas, 3);
  });

  test.lastly('the control plane stops, and the folder goes', async () => {
    await plane.stop();
    rmSync(work, { recursive: true });
  });
}

test.run();
