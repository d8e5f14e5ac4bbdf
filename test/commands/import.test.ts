// deadline: 300 s
/** `pullwright import`: what it makes passes `validate`, and does in `reconcile` what the other tool did. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Imported } from '../../runtime/rules/import/types.ts';
import { runProcess } from '../support/process.ts';
import { suite, table } from '../support/suite.ts';

import { AUTO, NAMESPACES, namespaceObject, type Plain, reflector, rows, secret } from './import-cases.ts';

const test = suite('pullwright import');
const main = new URL('../../main.ts', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'pullwright-import-'));
const pullwright = (...args: readonly string[]) => runProcess([process.execPath, main, ...args]);

interface ReconcileReport {
  readonly objects: readonly {
    readonly object: string;
    readonly verb: string;
    readonly diff?: readonly { readonly text: string }[];
  }[];
}

function write(dir: string, name: string, objects: readonly object[]): void {
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, name), objects.map((object) => `${JSON.stringify(object)}\n---\n`).join(''));
}

/** What the reconciler does with the imported profiles, once consent is given, and without the other tool's objects. */
async function reconciled(
  dir: string,
  objects: readonly Plain[],
  { fleet, grants }: Imported,
): Promise<ReconcileReport> {
  const rest = objects
    .filter(({ kind }) => kind !== 'SidecarSet' && kind !== 'ImagePullSecret')
    .map((object) => {
      const grant = grants.find(
        ({ namespace, name }) =>
          object.kind === 'Secret' &&
          object.metadata.namespace === namespace &&
          object.metadata.name === name,
      );
      if (grant === undefined) return object;
      const annotations = { ...object.metadata.annotations, 'pullwright.dev/grant-namespaces': grant.to };
      return { ...object, metadata: { ...object.metadata, annotations } };
    });
  const [cluster] = fleet['clusters'] as readonly {
    systems: Readonly<Record<string, { profiles: readonly { name: string; spec: object }[] } | undefined>>;
  }[];
  const profiles = (cluster?.systems['pull-secret-injection']?.profiles ?? []).map(({ name, spec }) => ({
    apiVersion: 'pullwright.dev/v1alpha1',
    kind: 'PullSecretProfile',
    metadata: { name },
    spec,
  }));
  write(dir, 'objects.yaml', [...rest, ...profiles]);
  const ran = await pullwright('reconcile', '--from', dir, '--output', 'json');
  assert.ok(ran.stdout !== '', ran.stderr);
  return JSON.parse(ran.stdout) as ReconcileReport;
}

let count = 0;

table(test, rows, async ({ objects, copies = [], injected, dropped }) => {
  count += 1;
  const dump = join(folder, `dump-${count}`);
  write(dump, 'dump.yaml', [...NAMESPACES, ...objects]);
  const ran = await pullwright('import', '--from', dump, '--output', 'json');
  const imported = JSON.parse(ran.stdout) as Imported;
  assert.equal(ran.code, dropped === undefined ? 0 : 1, ran.stdout);
  const lost = imported.notes.filter(({ outcome }) => outcome === 'dropped');
  if (dropped === undefined) assert.deepEqual(lost, []);
  else assert.match(lost.map(({ subject, message }) => `${subject}: ${message}`).join('\n'), dropped);

  const report = await reconciled(join(folder, `world-${count}`), [...NAMESPACES, ...objects], imported);
  const made = report.objects.filter(
    ({ object, verb }) => object.startsWith('Secret/') && verb !== 'unchanged',
  );
  assert.deepEqual(made.map(({ object }) => object.replace('Secret/', '')).toSorted(), copies);
  const pods = report.objects.flatMap(({ object, diff = [] }) => {
    const names = /imagePullSecrets: (\[.*\])/.exec(diff.map(({ text }) => text).join('\n'))?.[1];
    if (!object.startsWith('Pod/') || names === undefined) return [];
    return [
      `${object.split('/')[1]}/${(JSON.parse(names) as { name: string }[]).map(({ name }) => name).join(',')}`,
    ];
  });
  if (injected !== undefined) assert.deepEqual(pods, injected);
});

test('a management cluster: mirror sets, hosted clusters, the annotation that stays', async () => {
  const dump = join(folder, 'management');
  write(dump, 'dump.yaml', [
    {
      apiVersion: 'hypershift.openshift.io/v1beta1',
      kind: 'HostedCluster',
      metadata: {
        name: 'prod',
        namespace: 'clusters',
        annotations: {
          'hypershift.openshift.io/olm-catalogs-is-registry-overrides':
            'registry.redhat.io/redhat=m.io/redhat',
        },
      },
      spec: {},
    },
    {
      apiVersion: 'config.openshift.io/v1',
      kind: 'ImageDigestMirrorSet',
      metadata: { name: 'm' },
      spec: {
        imageDigestMirrors: [
          { source: 'quay.io/a', mirrors: ['m.io/a'], mirrorSourcePolicy: 'NeverContactSource' },
        ],
      },
    },
  ]);
  const ran = await pullwright('import', '--from', dump);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(
    ran.stdout,
    /^# Stays where it is:\n# {3}HostedCluster\/clusters\/prod: annotation hypershift/m,
  );
  const file = join(folder, 'fleet.yaml');
  writeFileSync(file, ran.stdout);
  const validated = await pullwright('validate', file);
  assert.equal(validated.code, 0, validated.stdout);
  const out = join(folder, 'rendered');
  assert.equal((await pullwright('synth', '--fleet', file, '--to', out)).code, 0);
  const back = JSON.parse((await pullwright('import', '--from', out, '--output', 'json')).stdout) as Imported;
  const forth = JSON.parse(
    (await pullwright('import', '--from', dump, '--output', 'json')).stdout,
  ) as Imported;
  const setsOf = ({ fleet }: Imported): unknown =>
    (fleet['clusters'] as readonly { systems: Readonly<Record<string, unknown>> }[])[0]?.systems[
      'registry-overrides'
    ];
  assert.deepEqual(setsOf(back), setsOf(forth));
});

test('what is made validates, from standard input too, and a guest cluster keeps its additional pull secret', async () => {
  const dump = [
    ...NAMESPACES,
    secret('kube-system', 'additional-pull-secret'),
    secret('hub', 'pull', reflector(AUTO)),
  ];
  const ran = await runProcess([process.execPath, main, 'import', '--from', '-'], {
    stdin: dump.map((object) => JSON.stringify(object)).join('\n---\n'),
  });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /global-pull-secret: \{\}/);
  assert.match(ran.stdout, /# {3}kubectl annotate secret -n hub pull pullwright\.dev\/grant-namespaces='\*'/);
  const validated = await runProcess([process.execPath, main, 'validate', '-'], { stdin: ran.stdout });
  assert.equal(validated.code, 0, validated.stdout + validated.stderr);
});

test('bad input is said', async () => {
  const empty = join(folder, 'empty');
  write(empty, 'nothing.yaml', [namespaceObject('a')]);
  const nothing = await pullwright('import', '--from', empty);
  assert.equal(nothing.code, 1);
  assert.match(nothing.stderr, /nothing in the input belongs to a tool that is known/);
  assert.equal((await pullwright('import')).code, 2);
  assert.match(
    (await pullwright('import', '--from', join(folder, 'absent'))).stderr,
    /Cannot read ".*absent": it is not there/,
  );
});

test.lastly('the work folder is removed', () => rmSync(folder, { recursive: true, force: true }));
test.run();
