/** Unit tests of the YAML, as a team would write them for its own repository. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareTree } from '@pullwright/charts';
import { expectPull, standInSecret } from '@pullwright/charts/testing';
import { App, Testing } from 'cdk8s';
import { parse } from 'yaml';
import { TeamCluster, tree } from './main.ts';

/** As much of the objects as is looked at here. */
interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules: unknown;
  readonly spec: {
    readonly template: {
      readonly spec: { readonly containers: readonly { readonly command: readonly string[] }[] };
    };
    readonly data: readonly { readonly remoteRef: unknown }[];
    readonly target: { readonly name: string };
  };
}

// `Testing.synth` gives the objects of a chart as plain JSON.
const find = (cluster: string, kind: string, name?: string): Rendered | undefined =>
  (Testing.synth(new TeamCluster(Testing.app(), cluster, { store: 'vault' })) as readonly Rendered[]).find(
    (object) => object.kind === kind && (name === undefined || object.metadata.name === name),
  );

void test('the agent never restarts a kubelet in production', () => {
  const command = find('team-a-prod', 'DaemonSet')?.spec.template.spec.containers[0]?.command ?? [];
  assert.ok(command.includes('--restart=never'), command.join(' '));
});

void test('each cluster reads its own key of the store', () => {
  const external = find('team-a-stage', 'ExternalSecret');
  assert.deepEqual(external?.spec.data[0]?.remoteRef, { key: 'registries/team-a-stage' });
  assert.equal(external?.spec.target.name, 'additional-pull-secret');
});

void test('who is on call may read this one Secret', () => {
  assert.deepEqual(find('team-a-prod', 'Role', 'pull-secret-on-call')?.rules, [
    { apiGroups: [''], resources: ['secrets'], resourceNames: ['additional-pull-secret'], verbs: ['get'] },
  ]);
});

void test('no file holds a Secret, and both Roles of the agent are there', () => {
  const files = tree();
  for (const [path, text] of files) assert.notEqual(parse(text).kind, 'Secret', path);
  for (const namespace of ['kube-system', 'openshift-config'])
    assert.ok(files.has(`team-a-prod/${namespace}/role-global-pull-secret-syncer.yaml`));
});

void test('objects of the External Secrets Operator are in an overlay of their own', () => {
  const base = parse(tree().get('team-a-prod/kustomization.yaml') ?? '').resources as string[];
  assert.deepEqual(
    base.filter((resource) => resource.includes('overlays')),
    [],
  );
  assert.ok(tree().has('team-a-prod/overlays/external-secrets.io/kustomization.yaml'));
});

void test('the committed manifests are what main.ts says', () => {
  const { added, changed, stale } = compareTree(new URL('manifests', import.meta.url).pathname, tree());
  assert.deepEqual([...added, ...changed, ...stale], []);
});

void test('a pod of the team pulls with the credential that the store brings to the nodes', () => {
  const chart = new TeamCluster(new App(), 'team-a-prod', { store: 'vault' });
  const web = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { containers: [{ name: 'web', image: 'quay.io/team-a/web:1' }] },
  };
  // What no repository holds: the platform's pull secret, and what the store makes of the ExternalSecret.
  const secrets = [
    standInSecret('kube-system', 'original-pull-secret', ['registry.redhat.io']),
    standInSecret('kube-system', 'additional-pull-secret', ['quay.io/team-a']),
  ];
  const pod = expectPull(chart, [web], secrets).pod('web');
  pod.pulls('quay.io/team-a/web:1').with('additional-pull-secret');
  pod.pulls('docker.io/library/nginx').anonymously();
  assert.throws(
    () => pod.pulls('quay.io/team-b/web:1').with('additional-pull-secret'),
    /no credential matches/,
  );
});
