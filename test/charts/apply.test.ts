// deadline: 1500 s
// needs: control plane
/** What is rendered, on a real API server: it applies in one pass, twice, and the admission policy says what it should. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { readFleet, renderFleet, renderTree, SYSTEMS, writeTree } from '../../charts/mod.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { ALL_CRDS } from '../control-plane/crds.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import { resourcePath } from '../control-plane/resource-path.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { MISSPELT_MIRROR_SET, OPENSHIFT_OBJECTS } from './openshift-objects.ts';
import { TRICKY } from './tricky-texts.ts';

const root = new URL('../..', import.meta.url).pathname;
const IMAGE = 'registry.example.com/pullwright/pullwright:0.1.0';

/** Required options of the systems that have some. */
const SECTIONS: Readonly<Record<string, unknown>> = {
  'global-pull-secret': { createConfigNamespace: true },
  'pull-secret-adapter': {
    api: 'https://hyperfleet.example.com',
    jobGoogleServiceAccount: 'pull-secrets@example-project.iam.gserviceaccount.com',
  },
};

test('the base of the committed tree needs nothing that a kube-apiserver does not bring', () => {
  const resources = parse(readFileSync(`${root}dist/manifests/kustomization.yaml`, 'utf8'))
    .resources as string[];
  const files = resources.filter((one) => one.endsWith('.yaml'));
  assert.ok(files.length > 0);
  for (const resource of files) {
    const { apiVersion } = parse(readFileSync(`${root}dist/manifests/${resource}`, 'utf8')) as {
      apiVersion: string;
    };
    assert.match(apiVersion, /^(v1|(apps|policy)\/v1|[a-z.]+\.k8s\.io\/v1)$/, resource);
  }
});

const plane = await controlPlane({
  crds: ALL_CRDS.filter((name) => !name.endsWith('.pullwright.dev')),
});
const folder = tempFolder();

const apply = (path: string) =>
  plane.kubectl('apply', '--server-side', '--validate=strict', '--field-manager=gitops', '-k', path);

const appliesTwice = async (path: string): Promise<void> => {
  const first = await apply(path);
  assert.equal(first.code, 0, first.stderr);
  const before = await versions(path);
  assert.ok(before.split('\n').length > 20, before);
  const second = await apply(path);
  assert.equal(second.code, 0, second.stderr);
  assert.equal(await versions(path), before);
  const diff = await plane.kubectl('diff', '--server-side', '--field-manager=gitops', '-k', path);
  assert.equal(diff.code, 0, diff.stdout);
};

const versions = async (path: string): Promise<string> =>
  (
    await plane.kubectl(
      'get',
      '-k',
      path,
      '-o',
      'jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name} {.metadata.resourceVersion}{"\\n"}{end}',
    )
  ).stdout;

test('the committed tree applies in one pass, and the second time changes nothing', () =>
  appliesTwice(`${root}dist/manifests`));

test('so does a cluster with every system', async () => {
  const systems = Object.fromEntries(SYSTEMS.map(({ name }) => [name, SECTIONS[name] ?? {}]));
  const fleet = readFleet({ image: IMAGE, clusters: [{ name: 'every', systems }] });
  writeTree(folder, renderFleet(fleet).tree);
  await appliesTwice(join(folder, 'every'));
  rmSync(join(folder, 'every'), { recursive: true });
});

// One name in different namespaces, and settings of their own.
const guestIn = (namespace: string, secrets: 'list' | 'named') => ({
  kind: 'hosted' as const,
  management: 'management',
  hostedCluster: { namespace, name: 'guest' },
  systems: { 'credential-provider': { executable: {}, provider: { secrets } }, 'registry-overrides': {} },
});

test('a management cluster and its hosted clusters apply, once what is theirs is there', async () => {
  for (const namespace of ['blue', 'green', 'blue-guest', 'green-guest'])
    await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const fleet = readFleet({
    image: IMAGE,
    defaults: { systems: { 'global-pull-secret': {} } },
    clusters: [
      { name: 'management', kind: 'management' },
      { ...guestIn('blue', 'list'), name: 'prod' },
      { ...guestIn('green', 'named'), name: 'stage', delivery: 'reconciler' },
    ],
  });
  writeTree(folder, renderFleet(fleet).tree);
  for (const name of ['management', 'prod']) {
    const applied = await apply(join(folder, name));
    assert.equal(applied.code, 0, applied.stderr);
  }
});

const openShift = (object: KubeObject) =>
  plane.client.request(
    'PATCH',
    `${resourcePath(object)}?fieldManager=test&dryRun=All&fieldValidation=Strict`,
    object,
    'application/apply-patch+yaml',
  );

test("OpenShift's kinds pass the strict validation of their definitions", async () => {
  for (const object of OPENSHIFT_OBJECTS) {
    const { status, body } = await openShift(object);
    assert.equal(status, 201, `${object.kind}/${object.metadata.name}: ${body.message}`);
  }
});

// Without the real definitions the control plane takes any field.
if (process.env['PULLWRIGHT_CRDS'] !== undefined)
  test('and a field that OpenShift does not have is refused', async () => {
    const { body } = await openShift(MISSPELT_MIRROR_SET);
    assert.match(body.message ?? '', /imageTagMirrors: field not declared in schema/);
  });

test('texts that YAML could take for something else arrive as they are', async () => {
  const data = Object.fromEntries(TRICKY.map((text, index) => [`k${index}`, text]));
  const object = { ...meta('v1 ConfigMap', { name: 'tricky', namespace: 'default' }), data };
  writeTree(join(folder, 'tricky'), renderTree([object]));
  const applied = await apply(join(folder, 'tricky'));
  assert.equal(applied.code, 0, applied.stderr);
  assert.deepEqual((await plane.get(object))?.['data'], data);
});

const additional = (type: string, data: Record<string, string>) => ({
  ...meta('v1 Secret', { name: 'additional-pull-secret', namespace: 'kube-system' }),
  type,
  data,
});
const good = { '.dockerconfigjson': Buffer.from('{"auths":{"a.example.com":{}}}').toString('base64') };
const post = (object: ReturnType<typeof additional>) =>
  plane.client.request('POST', '/api/v1/namespaces/kube-system/secrets', object);
const enforce = async (mode: 'warn' | 'deny' | 'off') => {
  const cluster = {
    name: 'policy',
    path: '.',
    systems: { 'global-pull-secret': { enforce: mode, createConfigNamespace: true } },
  };
  const tree = renderFleet(readFleet({ image: IMAGE, clusters: [cluster] })).tree;
  writeTree(join(folder, 'policy'), tree);
  const applied = await apply(join(folder, 'policy'));
  assert.equal(applied.code, 0, applied.stderr);
};
const kubectlApply = async (object: object): Promise<string> => {
  writeTree(join(folder, 'secret'), renderTree([object as never]));
  const ran = await plane.kubectl('apply', '--server-side', '--dry-run=server', '-k', join(folder, 'secret'));
  return ran.stderr;
};

test('a wrong additional-pull-secret is warned about, and goes through', async () => {
  await enforce('warn');
  // A policy takes a moment until it is in force.
  await eventually(async () => {
    const warnings = await kubectlApply(additional('Opaque', {}));
    assert.match(warnings, /Warning: .*has type Opaque, expected kubernetes\.io\/dockerconfigjson/);
    assert.match(warnings, /Warning: .*must have the key \.dockerconfigjson/);
  });
  assert.equal(await kubectlApply(additional('kubernetes.io/dockerconfigjson', good)), '');
  assert.equal(
    await kubectlApply({
      ...additional('Opaque', {}),
      metadata: { name: 'other', namespace: 'kube-system' },
    }),
    '',
  );
});

test('with deny, a wrong one is refused, and one that was there before can still be updated', async () => {
  assert.equal((await post(additional('Opaque', good))).status, 201);
  await enforce('deny');
  await plane.remove(additional('Opaque', {}));
  await eventually(async () => {
    const refused = await post(additional('Opaque', {}));
    if (refused.status === 201) await plane.remove(additional('Opaque', {}));
    assert.equal(refused.status, 422);
    assert.match(refused.body.message ?? '', /has type Opaque/);
  });
  assert.equal((await post(additional('kubernetes.io/dockerconfigjson', good))).status, 201);
});
