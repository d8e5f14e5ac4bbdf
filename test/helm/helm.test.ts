// deadline: 900 s
/** The chart: what Helm makes of it is what `synth` renders for the same input; bad values are refused; and docs/helm.md, run as it stands. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { readFleet, renderCluster } from '../../charts/mod.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { controlPlaneBinaries } from '../control-plane/build.ts';
import { missingControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { docBlocks } from '../support/doc-blocks.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';
import { helmProgram, missingHelm } from './build.ts';
import { ADAPTER, ALL, EQUAL, IMAGE, REFUSED, type Values } from './values.ts';

const test = suite('synth --format helm');
const root = new URL('../..', import.meta.url).pathname;
const missing = missingHelm() ?? missingControlPlane();

if (missing !== undefined) test.skip('all of it', missing);
else {
  const helm = await helmProgram();
  const work = mkdtempSync(join(tmpdir(), 'pullwright-helm-'));
  const bin = join(work, '.bin');
  mkdirSync(bin);
  writeFileSync(join(work, 'fleet.yaml'), `image: ${IMAGE}\nclusters: [{ name: plain }]\n`);
  const environment = { PATH: `${bin}:/usr/bin:/bin`, HOME: work };
  const run = (command: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<ProcessResult> =>
    runProcess(command, { cwd: work, deadlineMs: 240_000, env: { ...environment, ...env } });
  const synth = await run([process.execPath, `${root}main.ts`, 'synth', '--format', 'helm', '--to', 'plain']);

  const template = (values: Values, ...more: readonly string[]): Promise<ProcessResult> => {
    const file = join(work, 'values.json');
    writeFileSync(file, JSON.stringify(values));
    return run([helm, 'template', 'release', 'plain', '--namespace', 'releases', '--values', file, ...more]);
  };

  test('the chart is written, and a second run changes nothing', async () => {
    assert.equal(synth.code, 0, synth.stderr);
    const again = await run([
      process.execPath,
      `${root}main.ts`,
      'synth',
      '--format',
      'helm',
      '--to',
      'plain',
      '--check',
    ]);
    assert.equal(again.code, 0, again.stdout);
  });

  test('Helm finds nothing to complain of', async () => {
    const { code, stdout, stderr } = await run([helm, 'lint', '--strict', 'plain']);
    assert.equal(code, 0, stdout + stderr);
  });

  for (const values of EQUAL)
    test(`Helm makes what synth renders for ${JSON.stringify(values).slice(0, 150)}`, async () => {
      const { code, stdout, stderr } = await template(values);
      assert.equal(code, 0, stderr);
      assert.deepEqual(objectsOf(stdout), rendered(values));
    });

  test('the namespace of the release is left to Helm, whoever made it', async () => {
    const { stdout } = await template({ systems: { verify: true } }, '--namespace', 'pullwright-system');
    const named = [...objectsOf(stdout).keys()].filter((name) => name.startsWith('Namespace/'));
    assert.deepEqual(named, []);
  });

  test('the definitions are those of all systems', () => {
    const files = readdirSync(join(work, 'plain/crds')).map((name) =>
      readFileSync(join(work, 'plain/crds', name), 'utf8'),
    );
    const wanted = fleetObjects({
      systems: { ...ALL, 'registry-overrides': true, 'pull-secret-adapter': ADAPTER },
    }).filter(({ kind }) => kind === 'CustomResourceDefinition');
    assert.deepEqual(objectsOf(files.join('---\n')), byName(wanted));
  });

  for (const [name, values, wanted] of REFUSED)
    test(`${name} is refused`, async () => {
      const { code, stderr } = await template(values);
      assert.equal(code, 1);
      assert.match(stderr, wanted);
    });

  test('what the chart has no value for is named when the chart is made', async () => {
    writeFileSync(
      join(work, 'more.yaml'),
      `image: ${IMAGE}\nclusters: [{ name: a, network: { egress: [10.0.0.0/8] }, systems: { verify: { warnDays: 3 } } }]\n`,
    );
    const { code, stderr } = await run([
      process.execPath,
      `${root}main.ts`,
      'synth',
      '--format',
      'helm',
      '--fleet',
      'more.yaml',
      '--to',
      'more',
    ]);
    assert.equal(code, 1);
    assert.match(stderr, /has no value for network, systems\.verify\.warnDays/);
  });

  test('docs/helm.md does what it says, in the order of the page', async () => {
    const plane = await startControlPlane();
    try {
      symlinkSync(helm, join(bin, 'helm'));
      symlinkSync((await controlPlaneBinaries()).kubectl, join(bin, 'kubectl'));
      writeFileSync(join(bin, 'pullwright'), `#!/bin/sh\nexec "${process.execPath}" "${root}main.ts" "$@"\n`);
      chmodSync(join(bin, 'pullwright'), 0o755);
      const deployment = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'pullwright-reconciler', namespace: 'pullwright-system' },
      };
      const job = {
        apiVersion: 'batch/v1',
        kind: 'CronJob',
        metadata: { name: 'pullwright-verify', namespace: 'pullwright-system' },
      };
      const wanted: Readonly<Record<string, readonly [boolean, boolean]>> = {
        Install: [true, false],
        Upgrade: [true, true],
        Uninstall: [false, false],
      };
      for (const { language, text, heading, skipped } of docBlocks('docs/helm.md')) {
        if (language === 'yaml') writeFileSync(join(work, /^# (\S+)\n/.exec(text)?.[1] ?? ''), text);
        if (language !== 'sh' || skipped !== undefined) continue;
        const ran = await run(['bash', '-euo', 'pipefail', '-c', text], { KUBECONFIG: plane.kubeconfig });
        assert.equal(ran.code, 0, `${text}\n${ran.stdout.slice(-500)}\n${ran.stderr.slice(-1500)}`);
        const expected = wanted[heading];
        if (expected !== undefined)
          assert.deepEqual(
            [await plane.get(deployment), await plane.get(job)].map((one) => one !== undefined),
            expected,
            heading,
          );
      }
      const kept = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'openshift-config' } };
      assert.notEqual(await plane.get(kept), undefined, 'the namespace of others stays');
    } finally {
      await plane.stop();
    }
  });

  test.lastly('the folder goes', () => rmSync(work, { recursive: true }));
}

test.run();

function fleetObjects(values: Values): readonly KubeObject[] {
  const { image = IMAGE, ...cluster } = values;
  const fleet = readFleet({ image, clusters: [{ name: 'plain', ...cluster }] });
  return fleet.clusters.flatMap((one) => renderCluster(fleet, one).objects);
}

/** What `synth` renders, with the one annotation that a chart adds. */
function rendered(values: Values): ReadonlyMap<string, unknown> {
  const objects = fleetObjects(values).filter(({ kind }) => kind !== 'CustomResourceDefinition');
  return byName(
    objects.map((object) =>
      object.kind === 'Namespace'
        ? {
            ...object,
            metadata: {
              ...object.metadata,
              annotations: { ...object.metadata.annotations, 'helm.sh/resource-policy': 'keep' },
            },
          }
        : object,
    ),
  );
}

function objectsOf(text: string): ReadonlyMap<string, unknown> {
  const documents = parseAllDocuments(text).map((document) => document.toJS() as KubeObject | null);
  return byName(documents.filter((object) => object !== null));
}

function byName(objects: readonly KubeObject[]): ReadonlyMap<string, unknown> {
  const plain = JSON.parse(JSON.stringify(objects)) as readonly KubeObject[];
  const named = plain.map((object): [string, KubeObject] => [
    `${object.kind}/${object.metadata.namespace ?? ''}/${object.metadata.name}`,
    object,
  ]);
  return new Map(named.sort(([a], [b]) => (a < b ? -1 : 1)));
}
