// deadline: 600 s
// needs: operator-verify
/** A bundle for the Operator Lifecycle Manager: it contains the whole fleet, and OperatorHub's validator accepts it. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { renderCluster } from '../../charts/app.ts';
import { type Fleet, readFleet } from '../../charts/fleet.ts';
import { renderBundle, writeTree } from '../../charts/mod.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { VERSION } from '../../runtime/core/version.ts';
import { docBlock } from '../support/doc-blocks.ts';
import { runInProcess } from '../support/in-process.ts';
import { runMain, runProcess } from '../support/process.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { bundleJudge } from './build.ts';

const work = tempFolder();
const IMAGE = 'registry.example.com/pullwright/pullwright:0.1.0';

interface Rights {
  readonly serviceAccountName: string;
  readonly rules: readonly unknown[];
}

interface Service {
  readonly spec: {
    readonly install: {
      readonly spec: {
        readonly deployments: readonly { readonly name: string; readonly spec: unknown }[];
        readonly permissions: readonly Rights[];
        readonly clusterPermissions: readonly Rights[];
      };
    };
    readonly customresourcedefinitions: {
      readonly owned: readonly {
        readonly name: string;
        readonly specDescriptors: readonly { readonly description?: string }[];
        readonly statusDescriptors: readonly { readonly description?: string }[];
      }[];
    };
    readonly relatedImages: readonly { readonly image: string }[];
  };
}

function fleetOf(systems: Readonly<Record<string, unknown>>): Fleet {
  return readFleet({ image: IMAGE, clusters: [{ name: 'prod', delivery: 'reconciler', systems }] });
}

const ALL = fleetOf({
  'global-pull-secret': { createConfigNamespace: true },
  'pull-secret-injection': {},
  'credential-provider': {},
  'registry-overrides': {},
});

const WEBHOOK = fleetOf({
  'pull-secret-injection': { admission: 'webhook', certificates: { kind: 'service-ca' } },
});

function objectsOf(fleet: Fleet): readonly KubeObject[] {
  return fleet.clusters.flatMap((cluster) => renderCluster(fleet, cluster).objects);
}

function serviceOf(fleet: Fleet): Service {
  return parse(renderBundle(fleet).get('manifests/pullwright.clusterserviceversion.yaml') ?? '') as Service;
}

const describe = ({ kind, metadata }: KubeObject): string =>
  `${kind}/${metadata.namespace ?? ''}/${metadata.name}`;

test('what the reconciler may do is what its Roles say, no more and no less', () => {
  const { permissions, clusterPermissions } = serviceOf(ALL).spec.install.spec;
  const bound = (kind: string): readonly unknown[] =>
    objectsOf(ALL)
      .filter((object) => object.kind === kind)
      .filter(({ metadata }) => kind === 'ClusterRoleBinding' || metadata.namespace === 'pullwright-system')
      .filter((object) => {
        const [subject] = object['subjects'] as readonly { kind: string; name: string }[];
        return subject?.kind === 'ServiceAccount' && subject.name === 'pullwright-reconciler';
      })
      .flatMap((binding) => {
        const { name } = binding['roleRef'] as { name: string };
        const of = kind.replace('Binding', '');
        return objectsOf(ALL).filter((role) => role.kind === of && role.metadata.name === name);
      })
      .flatMap((role) => role['rules'] as readonly unknown[]);
  assert.deepEqual(
    clusterPermissions.map((one) => one.serviceAccountName),
    ['pullwright-reconciler'],
  );
  assert.deepEqual(clusterPermissions[0]?.rules, bound('ClusterRoleBinding'));
  assert.deepEqual(permissions[0]?.rules, bound('RoleBinding'));
  assert.ok((clusterPermissions[0]?.rules.length ?? 0) > 10);
});

test('every object of the fleet is in the bundle, in its service version or beside it', () => {
  const tree = renderBundle(ALL);
  const service = serviceOf(ALL);
  const files = [...tree].flatMap(([path, text]) =>
    path.endsWith('.yaml') && !path.endsWith('kustomization.yaml') && !path.startsWith('metadata/')
      ? [parse(text) as KubeObject]
      : [],
  );
  const there = new Set(files.map(describe));
  const lost = objectsOf(ALL).filter(
    (object) =>
      !there.has(describe(object)) &&
      !there.has(describe({ ...object, metadata: { name: object.metadata.name } })),
  );
  // The other objects are those that OLM creates from the ClusterServiceVersion.
  assert.deepEqual([...new Set(lost.map(({ kind }) => kind))].sort(), [
    'ClusterRole',
    'ClusterRoleBinding',
    'Deployment',
    'Role',
    'RoleBinding',
    'ServiceAccount',
  ]);
  assert.deepEqual(
    service.spec.install.spec.deployments.map(({ name }) => name),
    lost.filter(({ kind }) => kind === 'Deployment').map(({ metadata }) => metadata.name),
  );
  const policies = objectsOf(ALL).filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');
  assert.ok(policies.length > 5 && policies.every((policy) => there.has(describe(policy))));
});

test('a webhook runs by the service version, and its configuration keeps the certificate that the fleet chose', () => {
  const tree = renderBundle(WEBHOOK);
  const { deployments, clusterPermissions } = serviceOf(WEBHOOK).spec.install.spec;
  assert.deepEqual(deployments.map(({ name }) => name).sort(), [
    'pullwright-reconciler',
    'pullwright-webhook',
  ]);
  assert.deepEqual(clusterPermissions.map((one) => one.serviceAccountName).sort(), [
    'pullwright-reconciler',
    'pullwright-webhook',
  ]);
  assert.ok(tree.has('manifests/pullwright-webhook.service.yaml'));
  const beside = tree.get('beside/_cluster/mutatingwebhookconfiguration-pullwright-webhook.yaml');
  assert.match(beside ?? '', /service\.beta\.openshift\.io\/inject-cabundle/);
});

test('our kinds are described field by field, and the image is named for who mirrors it', () => {
  const { customresourcedefinitions, relatedImages } = serviceOf(ALL).spec;
  assert.deepEqual(customresourcedefinitions.owned.map(({ name }) => name).sort(), [
    'pullsecretgrants.pullwright.dev',
    'pullsecretprofiles.pullwright.dev',
    'pullstatuses.pullwright.dev',
  ]);
  for (const { name, specDescriptors, statusDescriptors } of customresourcedefinitions.owned) {
    assert.ok(statusDescriptors.length > 0, name);
    for (const { description } of [...specDescriptors, ...statusDescriptors])
      assert.ok(description !== undefined && description !== '', name);
  }
  assert.deepEqual(
    relatedImages.map(({ image }) => image),
    [IMAGE],
  );
});

test('it takes the place of the version before it, and of every older one', () => {
  const text = (replaces?: string): string =>
    renderBundle(ALL, replaces).get('manifests/pullwright.clusterserviceversion.yaml') ?? '';
  const first = parse(text()) as KubeObject & { readonly spec: { readonly replaces?: string } };
  const next = parse(text('0.0.9')) as typeof first;
  assert.equal(first.metadata.annotations?.['olm.skipRange'], `<${VERSION}`);
  assert.equal(first.spec.replaces, undefined);
  assert.equal(next.spec.replaces, 'pullwright.v0.0.9');
});

interface Refused extends Case {
  readonly clusters: readonly Readonly<Record<string, unknown>>[];
  readonly says: RegExp;
}

const systems = { 'global-pull-secret': {} };
const refused: readonly Refused[] = [
  {
    name: 'delivery gitops',
    reason: 'OLM applies no DaemonSet',
    clusters: [{ name: 'a', systems }],
    says: /cluster "a" has delivery gitops, expected reconciler: OLM does not install DaemonSets\. Use a fleet/,
  },
  {
    name: 'two clusters',
    reason: 'a bundle is for one',
    clusters: [
      { name: 'a', delivery: 'reconciler', systems },
      { name: 'b', delivery: 'reconciler', systems },
    ],
    says: /the fleet has 2 clusters, expected one/,
  },
  {
    name: 'a management cluster',
    reason: 'its hosted clusters are no part of a bundle',
    clusters: [{ name: 'm', kind: 'management', systems: {} }],
    says: /cluster "m" is management, expected standalone/,
  },
];

table(test, refused, async ({ clusters, says }) => {
  const fleet = join(work, 'refused.yaml');
  writeFileSync(fleet, JSON.stringify({ image: IMAGE, clusters }));
  const ran = await runInProcess(['synth', '--format', 'olm', '--fleet', fleet, '--to', join(work, 'none')]);
  assert.equal(ran.code, 1, ran.stderr);
  assert.match(ran.stderr, says);
});

test('docs/olm.md: its fleet becomes a bundle by its command', async () => {
  const page = join(work, 'page');
  mkdirSync(page);
  writeFileSync(
    join(page, 'fleet.yaml'),
    docBlock('docs/olm.md', 'Operator Lifecycle Manager and OpenShift', 'yaml'),
  );
  const command = docBlock('docs/olm.md', 'Operator Lifecycle Manager and OpenShift', 'sh').trim().split(' ');
  const ran = await runMain(command.slice(1), { cwd: page });
  assert.equal(ran.code, 0, ran.stderr);
  const files = readdirSync(join(page, 'bundle'), { recursive: true }).map(String);
  for (const path of [
    'manifests/pullwright.clusterserviceversion.yaml',
    'metadata/annotations.yaml',
    'bundle.Dockerfile',
  ])
    assert.ok(files.includes(path), path);
  // No namespace of another owner, which `oc delete -k` would delete.
  assert.deepEqual(
    files.filter((path) => path.includes('namespace-')),
    ['beside/_cluster/namespace-pullwright-system.yaml'],
  );
});

test('a bundle needs a folder of its own', async () => {
  const ran = await runInProcess(['synth', '--format', 'olm']);
  assert.equal(ran.code, 2);
  assert.match(ran.stderr, /^Cannot write a bundle: expected --to with a separate folder\n/);
});
test('the judge of OperatorHub takes it, and refuses a broken one', async () => {
  const judge = await bundleJudge();
  const judged = (folder: string) => runProcess([judge, 'manifests', '--object_validate', folder]);
  for (const [name, fleet] of [
    ['all', ALL],
    ['one', fleetOf({ 'global-pull-secret': {} })],
    ['webhook', WEBHOOK],
  ] as const) {
    writeTree(join(work, name), renderBundle(fleet, '0.0.9'));
    const { code, stdout, stderr } = await judged(join(work, name, 'manifests'));
    assert.equal(code, 0, stdout + stderr);
    assert.doesNotMatch(stdout + stderr, /level=(error|warning)/);
  }
  const broken = new Map(renderBundle(ALL));
  broken.delete('manifests/pullstatuses.pullwright.dev.crd.yaml');
  writeTree(join(work, 'broken'), broken);
  const refusal = await judged(join(work, 'broken', 'manifests'));
  assert.match(refusal.stdout + refusal.stderr, /owned CRD .*Kind=PullStatus.* not found in bundle/);
});
