// deadline: 120 s
// needs: control plane
/** The readers of our kinds refuse exactly what the API server refuses under strict field validation. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { readPullSecretGrant } from '../../runtime/pull-secret-injection/kinds/grant.ts';
import { readProfile } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { namespaceObject, startPlane } from './live.ts';

const PROFILE = { namespaceSelector: {}, selector: {}, secrets: [{ name: 'reg' }] };
const SOURCES = [{ namespace: 'platform', name: 'quay' }];
const GRANT = { secrets: [{ name: 'quay' }], profiles: [{ name: '*' }], namespaces: ['a'] };
const many = (count: number): readonly string[] => Array.from({ length: count }, (_, at) => `n${at}`);
const expressions = (...list: readonly object[]): object => ({ matchExpressions: list });

type Spec = Readonly<Record<string, unknown>>;

/** Specs, by what is wrong with them; some are right. */
const PROFILES: Readonly<Record<string, Spec>> = {
  nothing: PROFILE,
  'no selector of pods with Distribute': {
    namespaceSelector: {},
    mode: 'Distribute',
    secrets: [{ name: 'reg', sources: SOURCES }],
  },
  'null for what may be left out': { ...PROFILE, suspend: null, order: null, mode: null },
  'no selector of pods': { namespaceSelector: {}, secrets: PROFILE.secrets },
  'no selector of namespaces': { selector: {}, secrets: PROFILE.secrets },
  'null for the selector of pods': { ...PROFILE, selector: null },
  'null for the selector of namespaces': { ...PROFILE, namespaceSelector: null },
  podSelector: { ...PROFILE, podSelector: {} },
  matchlabels: { ...PROFILE, namespaceSelector: { matchlabels: { team: 'a' } } },
  'matchExpression beside matchLabels': {
    ...PROFILE,
    selector: { matchLabels: { a: 'b' }, matchExpression: [] },
  },
  'matchLabels of pods that are no map': { ...PROFILE, selector: { matchLabels: ['a'] } },
  'a label that is a number': { ...PROFILE, selector: { matchLabels: { tier: 1 } } },
  'a label value that is none': { ...PROFILE, selector: { matchLabels: { tier: 'a b' } } },
  'too many labels': {
    ...PROFILE,
    selector: { matchLabels: Object.fromEntries(many(17).map((name) => [name, 'x'])) },
  },
  'an operator in lower case': {
    ...PROFILE,
    selector: expressions({ key: 'a', operator: 'in', values: ['b'] }),
  },
  'In without values': { ...PROFILE, selector: expressions({ key: 'a', operator: 'In' }) },
  'Exists with values': {
    ...PROFILE,
    selector: expressions({ key: 'a', operator: 'Exists', values: ['b'] }),
  },
  'an expression without a key': { ...PROFILE, selector: expressions({ operator: 'Exists' }) },
  'too many values': { ...PROFILE, selector: expressions({ key: 'a', operator: 'In', values: many(65) }) },
  'too many expressions': {
    ...PROFILE,
    selector: expressions(...many(17).map((key) => ({ key, operator: 'Exists' }))),
  },
  source: { ...PROFILE, secrets: [{ name: 'reg', source: SOURCES[0] }] },
  'suspend in quotes': { ...PROFILE, suspend: 'true' },
  'Distribute without sources': { ...PROFILE, mode: 'Distribute' },
  'a mode in lower case': { ...PROFILE, mode: 'inject' },
  'an order in quotes': { ...PROFILE, order: '1' },
  'an order that is too large': { ...PROFILE, order: 2_000_000 },
  'an order with a fraction': { ...PROFILE, order: 1.5 },
  'no secrets': { namespaceSelector: {}, selector: {} },
  'an empty list of secrets': { ...PROFILE, secrets: [] },
  'a secret without a name': { ...PROFILE, secrets: [{}] },
  'a secret with a name that is none': { ...PROFILE, secrets: [{ name: 'No_Name' }] },
  'a secret that is there twice': { ...PROFILE, secrets: [{ name: 'a' }, { name: 'a' }] },
  'too many secrets': { ...PROFILE, secrets: many(9).map((name) => ({ name })) },
  'too many sources in all': {
    ...PROFILE,
    secrets: many(3).map((name) => ({
      name,
      sources: many(6).map((one) => ({ namespace: 'p', name: one })),
    })),
  },
  'a source without a namespace': { ...PROFILE, secrets: [{ name: 'a', sources: [{ name: 'b' }] }] },
  'a field that there is not': { ...PROFILE, repair: 'Report' },
  'a label of copies that is reserved': {
    ...PROFILE,
    copies: { labels: { 'pullwright.dev/owner': 'me' } },
  },
  'an empty successor': { ...PROFILE, successor: '' },
  'a successor that is too long': { ...PROFILE, successor: 'a'.repeat(254) },
};

const GRANTS: Readonly<Record<string, Spec>> = {
  nothing: GRANT,
  'a selector of everything': { secrets: GRANT.secrets, profiles: GRANT.profiles, namespaceSelector: {} },
  nowhere: { secrets: GRANT.secrets, profiles: GRANT.profiles },
  namespace: { ...GRANT, namespace: 'a' },
  'a text for the list': { ...GRANT, namespaces: 'a' },
  'a namespace that is none': { ...GRANT, namespaces: ['A'] },
  'a namespace twice': { ...GRANT, namespaces: ['a', 'a'] },
  'too many namespaces': { ...GRANT, namespaces: many(257) },
  'a secret without a name': { ...GRANT, secrets: [{}] },
  'a text for a secret': { ...GRANT, secrets: ['quay'] },
  'a secret twice': { ...GRANT, secrets: [{ name: 'a' }, { name: 'a' }] },
  'an empty name': { ...GRANT, profiles: [{ name: '' }] },
  'no profiles': { ...GRANT, profiles: [] },
  'too many profiles': { ...GRANT, profiles: many(65).map((name) => ({ name })) },
  matchlabels: { ...GRANT, namespaceSelector: { matchlabels: {} } },
};

const plane = await startPlane();
await plane.apply(namespaceObject('platform'));
const API = '/apis/pullwright.dev/v1alpha1';
const refusal = async (path: string, object: KubeObject): Promise<string | undefined> => {
  const query = 'dryRun=All&fieldValidation=Strict';
  const { status, body } = await plane.client.request('POST', `${API}/${path}?${query}`, object);
  return status === 201 ? undefined : String(body.message);
};
const profileOf = (spec: Spec, rest: Spec = {}): KubeObject => ({
  ...meta('pullwright.dev/v1alpha1 PullSecretProfile', { name: 'x' }),
  spec,
  ...rest,
});
const agree = async (path: string, object: KubeObject, problems: readonly string[]): Promise<void> => {
  const said = await refusal(path, object);
  assert.equal(problems.length > 0, said !== undefined, `${problems.join('; ')} | API server: ${said}`);
};
const problemsOf = (object: KubeObject): readonly string[] => {
  const read = readProfile(object);
  return read.ok ? [] : read.problems;
};

for (const [name, spec] of Object.entries(PROFILES))
  test(`a profile: ${name}`, () => agree('pullsecretprofiles', profileOf(spec), problemsOf(profileOf(spec))));

for (const [name, rest] of Object.entries({
  'a field beside the spec': { suspend: true },
  'an annotation in the singular': { metadata: { name: 'x', annotation: {} } },
  'a label that is a number': { metadata: { name: 'x', labels: { a: 1 } } },
  'what every object has': {
    metadata: { name: 'x', labels: { a: 'b' }, annotations: {}, creationTimestamp: null },
  },
}))
  test(`a profile: ${name}`, async () => {
    const object = profileOf(PROFILE, rest);
    await agree('pullsecretprofiles', object, problemsOf(object));
  });

for (const [name, spec] of Object.entries(GRANTS))
  test(`a grant: ${name}`, async () => {
    const metadata = { name: 'x', namespace: 'platform' };
    const object: KubeObject = { ...meta('pullwright.dev/v1alpha1 PullSecretGrant', metadata), spec };
    await agree('namespaces/platform/pullsecretgrants', object, readPullSecretGrant(object).problems);
  });
