// deadline: 240 s
/**
 * The way from other tools, live: what Kyverno, External Secrets, registry-creds and imagepullsecret-patcher have in a cluster is dumped as the
 * help of `import` says, each object is carried over or named with the reason, and what comes out brings the copies that the
 * tool brought, once the owner of the Secret has consented.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Imported } from '../../runtime/rules/import/types.ts';
import { missingControlPlane } from '../control-plane/control-plane.ts';
import { installCrd } from '../control-plane/crds.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';
import {
  createPod,
  profileObject,
  readyNamespace,
  reconcilerUser,
  sourceObject,
  startPlane,
  startReconciler,
} from './live.ts';
import { waiter } from './live-scene.ts';

const test = suite('import, live');
const missing = missingControlPlane();
const main = new URL('../../main.ts', import.meta.url).pathname;

/** A kind of another tool, whose objects may hold anything. */
function definition(group: string, version: string, kind: string, plural: string): TestObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Cluster',
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
            },
          },
        },
      ],
    },
  };
}

const KINDS = [
  definition('kyverno.io', 'v1', 'ClusterPolicy', 'clusterpolicies'),
  definition('external-secrets.io', 'v1', 'ClusterExternalSecret', 'clusterexternalsecrets'),
  definition('ops.alexellis.io', 'v1', 'ClusterPullSecret', 'clusterpullsecrets'),
];

const kyverno = (name: string, rule: object): TestObject => ({
  apiVersion: 'kyverno.io/v1',
  kind: 'ClusterPolicy',
  metadata: { name },
  spec: { rules: [{ name: 'pull', ...rule }] },
});
const matching = (kind: string, more: object = {}): object => ({
  match: { any: [{ resources: { kinds: [kind], ...more } }] },
});
const clone = { generate: { kind: 'Secret', name: 'reg', clone: { namespace: 'hub', name: 'quay' } } };
const patcher = 'quay.io/titansoft/imagepullsecret-patcher:v0.14';

const TOOLS: readonly TestObject[] = [
  kyverno('copies', { ...matching('Namespace', { selector: { matchLabels: { team: 'a' } } }), ...clone }),
  kyverno('all-but-some', { ...matching('Namespace'), exclude: { any: [] }, ...clone }),
  kyverno('names', {
    ...matching('Pod', { namespaces: ['red'] }),
    mutate: { patchStrategicMerge: { spec: { imagePullSecrets: [{ name: 'own' }] } } },
  }),
  {
    apiVersion: 'external-secrets.io/v1',
    kind: 'ClusterExternalSecret',
    metadata: { name: 'vault' },
    spec: { externalSecretSpec: { target: { template: { type: 'kubernetes.io/dockerconfigjson' } } } },
  },
  {
    apiVersion: 'ops.alexellis.io/v1',
    kind: 'ClusterPullSecret',
    metadata: { name: 'everywhere' },
    spec: { secretRef: { name: 'mirror', namespace: 'hub' } },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'patcher', namespace: 'hub' },
    spec: {
      selector: { matchLabels: { app: 'patcher' } },
      template: {
        metadata: { labels: { app: 'patcher' } },
        spec: { containers: [{ name: 'patcher', image: patcher }] },
      },
    },
  },
];

if (missing !== undefined) test.skip('all of it', missing);
else {
  const folder = mkdtempSync(join(tmpdir(), 'pullwright-live-import-'));
  const plane = await startPlane();
  for (const kind of KINDS) await installCrd(plane.client, kind);
  for (const [name, labels] of [
    ['hub', {}],
    ['red', { team: 'a' }],
    ['blue', { team: 'b' }],
  ] as const)
    await readyNamespace(plane, name, labels);
  // Nobody has consented to anything yet.
  const owned = ['quay', 'mirror'].map((name) => sourceObject('hub', name, [`${name}.example.com`], ''));
  for (const object of [...owned, ...TOOLS]) await plane.apply(object);
  const user = await reconcilerUser(plane);
  const reconciler = startReconciler(plane, user);
  const soon = waiter(reconciler);
  const dump = join(folder, 'dump.yaml');
  let imported: Imported | undefined;

  /** Copies, as `namespace/name`. */
  const copies = async (): Promise<readonly string[]> => {
    const label = '--selector=pullwright.dev/owner=pull-secret-injection';
    const { stdout } = await plane.kubectl('get', 'secrets', '--all-namespaces', label, '--output=json');
    const { items } = JSON.parse(stdout) as { readonly items: readonly TestObject[] };
    return items.map(({ metadata: { namespace, name } }) => `${namespace}/${name}`).sort();
  };

  test('every object of a tool is carried over, or named with the reason', async () => {
    const kinds = `ns,secrets,deployments,${KINDS.map(({ spec }) => spec.names.plural).join()}`;
    const { stdout: text } = await plane.kubectl('get', kinds, '--all-namespaces', '--output=yaml');
    writeFileSync(dump, text);
    const ran = await runProcess([process.execPath, main, 'import', '--from', dump, '--output', 'json']);
    assert.equal(ran.code, 1, ran.stderr);
    imported = JSON.parse(ran.stdout) as Imported;
    const said = imported.notes.map(({ subject, outcome }) => `${subject} ${outcome}`).sort();
    assert.deepEqual(said, [
      'ClusterExternalSecret/vault kept',
      'ClusterPolicy/all-but-some rule pull dropped',
      'ClusterPolicy/copies rule pull changed',
      'ClusterPolicy/names rule pull carried',
      'ClusterPullSecret/everywhere changed',
      'Deployment/hub/patcher dropped',
      'image changed',
    ]);
    assert.doesNotMatch(ran.stdout, /auths|dockerconfigjson":/);
  });

  test('what comes out passes validate, and does nothing before the owner consents', async () => {
    assert.ok(imported);
    const file = join(folder, 'fleet.yaml');
    const text = await runProcess([process.execPath, main, 'import', '--from', dump]);
    writeFileSync(file, text.stdout);
    const { code, stderr } = await runProcess([process.execPath, main, 'validate', file]);
    assert.equal(code, 0, stderr);
    for (const { name, spec } of profilesOf(imported)) await plane.apply(profileObject(name, spec));
    await soon(async () => {
      const stored = await plane.get(profileObject('reg', {}));
      assert.match(JSON.stringify(stored?.['status'] ?? {}), /NotGranted/);
    });
    assert.deepEqual(await copies(), []);
  });

  test('with the consent that it names, the copies are those of the tool, and pods get the names', async () => {
    assert.ok(imported);
    assert.deepEqual(imported.grants.map(({ namespace, name }) => `${namespace}/${name}`).sort(), [
      'hub/mirror',
      'hub/quay',
    ]);
    for (const { namespace, name, to } of imported.grants)
      await plane.apply({
        ...sourceObject(namespace, name, [`${name}.example.com`], to),
      });
    await soon(async () => {
      const found = await copies();
      for (const one of ['red/reg', 'red/everywhere', 'blue/everywhere'])
        assert.ok(found.includes(one), found.join());
      assert.ok(!found.includes('blue/reg'), found.join());
    });
    for (const [namespace, name, source] of [
      ['red', 'reg', 'quay'],
      ['blue', 'everywhere', 'mirror'],
    ] as const) {
      const copy = await plane.get(sourceObject(namespace, name, []));
      const given = await plane.get(sourceObject('hub', source, []));
      assert.deepEqual(copy?.['data'], given?.['data']);
    }
    await soon(async () => {
      const made = await createPod(plane, { name: `web-${Date.now()}`, namespace: 'red' });
      assert.ok('names' in made);
      assert.ok(made.names.includes('own') && made.names.includes('everywhere'), made.names.join());
    });
  });

  test.lastly('ends', async () => {
    await reconciler.stop();
    assert.doesNotMatch(reconciler.log(), /ReconcilerThrew/);
    await plane.stop();
    rmSync(folder, { recursive: true });
  });
}

interface ImportedProfile {
  readonly name: string;
  readonly spec: Record<string, unknown>;
}

function profilesOf({ fleet }: Imported): readonly ImportedProfile[] {
  const [cluster] = fleet['clusters'] as readonly {
    readonly systems: Readonly<Record<string, { readonly profiles: readonly ImportedProfile[] } | undefined>>;
  }[];
  return cluster?.systems['pull-secret-injection']?.profiles ?? [];
}

test.run();
