// deadline: 240 s
// needs: control plane
/** Slips in a profile, by an author with an account of its own and kubectl: refused, or stored and not acted upon; tenants keep their copies. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sectionProblems } from '../../charts/pull-secret-injection/chart.ts';
import { judgeManifests } from '../../runtime/diagnose/checks/documents.ts';
import { pullSecretProfileCrd } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { installCrd } from '../control-plane/crds.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { test } from '../support/suite.ts';
import {
  createPod,
  profileObject,
  readyNamespace,
  reconcilerUser,
  sourceObject,
  startPlane,
  startReconciler,
} from './live.ts';
import { applySource, conditionOf, teamProfile, waiter } from './live-scene.ts';

type Spec = Readonly<Record<string, unknown>>;
const GOOD = teamProfile()['spec'] as Spec;
const { selector: _selector, ...WITHOUT_SELECTOR } = GOOD;
const { namespaceSelector: _namespaces, ...WITHOUT_NAMESPACES } = GOOD;

/** Typos, and our messages for them: in `validate`, in `synth`, and in the status of a stored profile. */
type Slips = Readonly<Record<string, readonly [spec: Spec, reader: RegExp]>>;

/** Refused by the API server, which the strictness of the definition is tested for. */
const REFUSED: Slips = {
  'matchlabels of namespaces': [
    { ...GOOD, namespaceSelector: { matchlabels: { team: 'a' } } },
    /^spec\.namespaceSelector\.matchlabels: unknown field/,
  ],
  'matchExpression of pods beside matchLabels': [
    { ...GOOD, selector: { matchLabels: { app: 'web' }, matchExpression: [] } },
    /^spec\.selector\.matchExpression: unknown field/,
  ],
  'podSelector in place of selector': [
    { ...WITHOUT_SELECTOR, podSelector: {} },
    /^spec\.podSelector: unknown field/,
  ],
  'no selector of pods': [WITHOUT_SELECTOR, /^spec\.selector: required value/],
  'no selector of namespaces': [WITHOUT_NAMESPACES, /^spec\.namespaceSelector: required value/],
  'suspend in quotes': [
    { ...GOOD, suspend: 'true' },
    /^spec\.suspend: invalid value "true": must be a boolean/,
  ],
  'Distribute without sources': [
    { ...GOOD, mode: 'Distribute', secrets: [{ name: 'reg' }] },
    /^spec\.secrets\[0\]\.sources: must name a source: spec\.mode is Distribute/,
  ],
};

/** Typos that the API server stores without validation, after it drops unknown fields. */
const STORED: Slips = {
  'source in place of sources': [
    { ...GOOD, secrets: [{ name: 'reg', source: { namespace: 'platform', name: 'quay' } }] },
    /^spec\.secrets\[0\]\.source: unknown field/,
  ],
  'offers in place of offer': [{ ...GOOD, offers: 'OnRequest' }, /^spec\.offers: unknown field/],
  'suspended in place of suspend': [
    { ...GOOD, suspended: true, namespaceSelector: {} },
    /^spec\.suspended: unknown field/,
  ],
};

/** A template without its value. */
const WITHOUT_VALUE: Slips[string] = [
  { ...GOOD, namespaceSelector: { matchLabels: { team: null } } },
  /^spec\.namespaceSelector\.matchLabels\["team"\]: must not be null/,
];

const SLIPS: Slips = { ...REFUSED, ...STORED, 'a label without its value': WITHOUT_VALUE };
for (const [name, [spec, reader]] of Object.entries(SLIPS))
  test(`validate and synth say of ${name} the same`, () => {
    const object = profileObject('team', spec);
    const judged = judgeManifests([{ object, file: 'a.yaml', line: 1 }]).filter(
      ({ severity }) => severity === 'error',
    );
    const synth = sectionProblems({ profiles: [{ name: 'team', spec }] }, { kind: 'standalone' });
    const texts = synth.map(({ text }) => text);
    assert.match(texts.join('\n'), reader);
    assert.deepEqual(
      judged.map(({ path, message }) => `${path}: ${message}`),
      texts,
    );
  });

const plane = await startPlane();
await applySource(plane, ['red', 'blue']);
for (const name of ['red', 'blue']) await readyNamespace(plane, name, { team: 'a' });
await readyNamespace(plane, 'outside');
const profiles = { apiGroups: ['pullwright.dev'], resources: ['pullsecretprofiles'], verbs: ['*'] };
const secrets = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] };
const author = await plane.user({
  name: 'author',
  by: 'token',
  cluster: [profiles],
  namespaces: { platform: [{ ...secrets, resourceNames: ['quay'] }] },
});
const tenants = await Promise.all(
  ['red', 'blue'].map((name) => plane.user({ name, by: 'token', namespaces: { [name]: [secrets] } })),
);
const reconciler = startReconciler(plane, await reconcilerUser(plane));
const soon = waiter(reconciler);
const file = join(plane.folder, 'profile.json');
const write = async (verb: string, spec: Spec, ...flags: readonly string[]): Promise<string> => {
  writeFileSync(file, JSON.stringify(profileObject('team', spec)));
  const ran = await plane.kubectl(verb, `--kubeconfig=${author.kubeconfig}`, '-f', file, ...flags);
  return ran.code === 0 ? '' : ran.stderr;
};
const apply = (spec: Spec, ...flags: readonly string[]): Promise<string> => write('apply', spec, ...flags);
/** Version of each tenant's copy, as the tenant reads it. */
const copies = (): Promise<readonly unknown[]> =>
  Promise.all(
    tenants.map(async ({ client }, at) => {
      const path = `/api/v1/namespaces/${['red', 'blue'][at]}/secrets/reg`;
      const { status, body } = await client.request('GET', path);
      return status === 200 ? body.metadata.resourceVersion : status;
    }),
  );
const elsewhere = (): Promise<readonly unknown[]> =>
  Promise.all(
    ['platform', 'outside', 'default'].map((namespace) =>
      plane.get({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'reg', namespace } }),
    ),
  );
const good = async (): Promise<readonly unknown[]> => {
  assert.equal(await apply(GOOD), '');
  await soon(async () => assert.equal(await conditionOf(plane, 'team', 'Ready'), 'True Current'));
  return copies();
};
/** Message for the author in the profile. */
const readyMessage = async (): Promise<string> => {
  const path = '/apis/pullwright.dev/v1alpha1/pullsecretprofiles/team';
  const conditions = (await author.client.request('GET', path)).body.status.conditions as readonly {
    readonly type: string;
    readonly message: string;
  }[];
  return conditions.find(({ type }) => type === 'Ready')?.message ?? '';
};
const isHeld = async (reader: RegExp, before: readonly unknown[]): Promise<void> => {
  await soon(async () => assert.equal(await conditionOf(plane, 'team', 'Ready'), 'False Invalid'));
  assert.match(await readyMessage(), reader);
  assert.deepEqual(await copies(), before, 'the copies stay as they are');
  assert.deepEqual(await elsewhere(), [undefined, undefined, undefined], 'nobody gets one by a slip');
};

for (const [name, [spec, reader]] of Object.entries(STORED))
  test(`${name}: without validation it is stored, and not acted upon`, async () => {
    const before = await good();
    assert.equal(before.includes(404), false);
    assert.match(await apply(spec), /unknown field "spec\./);
    assert.equal(await apply(spec, '--validate=false'), '');
    await isHeld(reader, before);
  });

test('a label without its value: refused in what is new, and not acted upon where kubectl takes the label out of the value', async () => {
  const before = await good();
  const [spec, reader] = WITHOUT_VALUE;
  const path = '/apis/pullwright.dev/v1alpha1/pullsecretprofiles';
  const fresh = await author.client.request('POST', path, profileObject('fresh', spec));
  assert.equal(fresh.status, 422);
  assert.match(String(fresh.body.message), /matchLabels: .*a value must not be null/);
  assert.equal(await apply(spec), '');
  await isHeld(reader, before);
});

test('what an older definition let in is not acted upon: copies stay, and are not rotated', async () => {
  const before = await good();
  const crd: TestObject = pullSecretProfileCrd();
  const older = structuredClone(crd);
  delete older['spec'].versions[0].schema.openAPIV3Schema.properties.spec.properties.namespaceSelector.anyOf;
  await installCrd(plane.client, older);
  const path = '/apis/pullwright.dev/v1alpha1/pullsecretprofiles/team';
  const body = {
    metadata: { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': null } },
    spec: { namespaceSelector: { matchLabels: null, matchNames: ['red'] } },
  };
  await eventually(async () => {
    const { status } = await author.client.request('PATCH', path, body, 'application/merge-patch+json');
    assert.equal(status, 200);
  });
  await installCrd(plane.client, crd);
  await isHeld(/^spec\.namespaceSelector\.matchNames: unknown field/, before);
  await plane.apply(sourceObject('platform', 'quay', ['quay.io', 'more.example']));
  // Told after the Secret, so that a copy would have been written by then.
  await plane.apply(
    profileObject('marker', {
      ...GOOD,
      secrets: [{ name: 'marker', sources: [{ namespace: 'platform', name: 'quay' }] }],
    }),
  );
  await soon(async () => assert.equal(await conditionOf(plane, 'marker', 'Ready'), 'True Current'));
  assert.deepEqual(await copies(), before);
  await plane.remove(profileObject('marker', {}));
});

test('corrected, it goes on', async () => {
  const before = await copies();
  // `apply` would leave the field that it has not applied.
  assert.equal(await write('replace', GOOD), '');
  await soon(async () => assert.equal(await conditionOf(plane, 'team', 'Ready'), 'True Current'));
  const after = await copies();
  assert.ok(
    after.every((version, at) => version !== 404 && version !== before[at]),
    'rotated',
  );
  await soon(async () => {
    const made = await createPod(plane, { name: `web-${Date.now()}`, namespace: 'red' });
    assert.deepEqual(made, { names: ['reg'] });
  });
});

test.lastly('ends', () => reconciler.stop());
