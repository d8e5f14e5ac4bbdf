/** What a tenant asks for, and what becomes of it. */
import assert from 'node:assert/strict';
import { readProfile } from '../../runtime/rules/injection/profile.ts';
import { readPullSecretClaim } from '../../runtime/rules/injection/pull-secret-claim.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { type Case, suite, table } from '../support/suite.ts';
import { conditionOf, namespace, profile, ready, readyMessage, type Scene, scene, source } from './scene.ts';

const test = suite('PullSecretClaim');
const red = namespace('red', { team: 'a' });
const blue = namespace('blue', { team: 'a' });
const stranger = namespace('stranger');
const quay = source('platform/quay', ['quay.io'], '');
const secrets = [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }];
const offered = (more: Record<string, unknown> = {}): KubeObject =>
  profile('quay', { offer: 'OnRequest', mode: 'Distribute', secrets, ...more });
const claim = (inNamespace: string, spec: unknown = { profile: 'quay' }): KubeObject => ({
  apiVersion: 'pullwright.dev/v1alpha1',
  kind: 'PullSecretClaim',
  metadata: { name: 'quay', namespace: inNamespace, generation: 1 },
  spec,
});
const grant = (...namespaces: readonly string[]): KubeObject => ({
  apiVersion: 'pullwright.dev/v1alpha1',
  kind: 'PullSecretGrant',
  metadata: { name: 'quay', namespace: 'platform', generation: 1 },
  spec: { secrets: [{ name: 'quay' }], profiles: [{ name: 'quay' }], namespaces },
});
const answer = (seen: Scene, inNamespace: string): string | undefined =>
  ready(seen.status('PullSecretClaim', 'quay', inNamespace));
const holders = (seen: Scene): readonly string[] =>
  ['red', 'blue', 'stranger'].filter((name) => seen.secret(name, 'reg') !== undefined);

test('only who asks and is granted gets it', () => {
  const open = scene([red, blue, quay, offered(), grant('red', 'blue')]);
  assert.deepEqual(holders(open), [], 'nobody asks');
  const asked = open.after([claim('red')]);
  assert.deepEqual(holders(asked), ['red']);
  assert.equal(answer(asked, 'red'), 'True Brought');
  assert.deepEqual(
    (asked.status('PullSecretClaim', 'quay', 'red') as { secrets?: unknown } | undefined)?.secrets,
    ['reg'],
  );
  const withdrawn = asked.after([{ gone: claim('red') }]);
  assert.deepEqual(holders(withdrawn), [], 'who asks no longer has it no longer');
});

test('the owner of the source approves by a grant, and takes it back', () => {
  const asked = scene([red, blue, quay, offered(), grant('blue'), claim('red'), claim('blue')]);
  assert.deepEqual(holders(asked), ['blue']);
  assert.equal(answer(asked, 'red'), 'False NotGranted');
  assert.equal(conditionOf(asked.status('PullSecretClaim', 'quay', 'red'), 'Reconciling'), 'True NotGranted');
  assert.equal(answer(asked, 'blue'), 'True Brought');
  const approved = asked.after([grant('red', 'blue')]);
  assert.deepEqual(holders(approved), ['red', 'blue']);
  assert.equal(answer(approved, 'red'), 'True Brought');
  const revoked = approved.after([grant('blue')]);
  assert.deepEqual(holders(revoked), ['blue']);
  assert.equal(answer(revoked, 'red'), 'False NotGranted');
});

test('a claim says that pods get the names when they do, and not before', () => {
  const asked = scene([red, quay, offered({ mode: 'InjectAndDistribute' }), claim('red')], {
    admission: 'none',
  });
  const injecting = (seen: Scene): string | undefined =>
    conditionOf(seen.status('PullSecretClaim', 'quay', 'red'), 'Injecting');
  assert.equal(injecting(asked), 'False NotBrought');
  assert.equal(injecting(asked.after([grant('red')])), 'False AdmissionOff');
});

test('a request that nobody approved is no trouble of the profile', () => {
  const seen = scene([red, blue, quay, offered(), grant('blue'), claim('red'), claim('blue')]);
  const status = seen.status('PullSecretProfile', 'quay') as
    | { copies?: string; namespaces?: object; conditions: [] }
    | undefined;
  assert.equal(ready(status), 'True Current');
  assert.equal(status?.copies, '1/1');
  assert.deepEqual(status?.namespaces, { selected: 1, current: 1, pending: 1 });
});

test('a profile whom nobody may have yet says who waits', () => {
  const seen = scene([red, blue, quay, offered(), claim('red'), claim('blue')]);
  const status = seen.status('PullSecretProfile', 'quay');
  assert.equal(ready(status), 'Unknown NothingSelected');
  assert.match(readyMessage(status), /; 2 that ask by a PullSecretClaim are not granted yet$/);
});

interface AnswerCase extends Case {
  readonly profiles: readonly KubeObject[];
  readonly spec?: unknown;
  readonly more?: readonly KubeObject[];
  readonly says: string;
  readonly text: RegExp;
}

table<AnswerCase>(
  test,
  [
    {
      name: 'no such profile',
      reason: 'a typo is said to who made it',
      profiles: [],
      says: 'False ProfileMissing',
      text: /^PullSecretProfile "quay" does not exist; nothing is offered to this namespace$/,
    },
    {
      name: 'no such profile, and others',
      reason: 'who may not list profiles learns of those that are offered to it, and of no other',
      profiles: ['b', 'a'].flatMap((name) => [
        { ...offered(), metadata: { name: `offer-${name}`, generation: 1 } },
        profile(`everywhere-${name}`, { mode: 'Distribute', secrets }),
        profile(`elsewhere-${name}`, {
          offer: 'OnRequest',
          mode: 'Distribute',
          namespaceSelector: { matchLabels: { team: 'b' } },
          secrets,
        }),
      ]),
      says: 'False ProfileMissing',
      text: /does not exist; offered here: "offer-(a|b)", "offer-(a|b)"$/,
    },
    {
      name: 'a profile that cannot be read',
      reason: 'its author is told more',
      profiles: [offered({ order: 'first' })],
      says: 'False ProfileInvalid',
      text: /cannot be read now/,
    },
    {
      name: 'a profile that serves everybody',
      reason: 'the claim changes nothing',
      profiles: [profile('quay', { mode: 'Distribute', secrets })],
      says: 'False NotOnRequest',
      text: /offers nothing on request/,
    },
    {
      name: 'a profile for others',
      reason: 'its selector bounds who may ask',
      profiles: [offered({ namespaceSelector: { matchLabels: { team: 'b' } } })],
      says: 'False NotOffered',
      text: /is not offered to namespace "red": its namespaceSelector does not select it/,
    },
    {
      name: 'a namespace that opted out',
      reason: 'one of the two is a mistake',
      profiles: [offered()],
      more: [namespace('red', { team: 'a', 'pullwright.dev/distribute': 'false' })],
      says: 'False NotOffered',
      text: /or it opted out$/,
    },
    {
      name: 'a profile that is suspended',
      reason: 'nothing is brought',
      profiles: [offered({ suspend: true })],
      says: 'False Suspended',
      text: /is suspended: /,
    },
    {
      name: 'a claim without a profile',
      reason: 'bad input',
      profiles: [offered()],
      spec: {},
      says: 'False ClaimInvalid',
      text: /^spec\.profile: required value/,
    },
    {
      name: 'a Secret of the tenant in the way',
      reason: 'its owner has to act',
      profiles: [offered()],
      more: [source('red/reg', ['mine.example'], '')],
      says: 'False ForeignObject',
      text: /was made by somebody else/,
    },
    {
      name: 'a profile that brings nothing',
      reason: 'nothing is concluded from that',
      profiles: [offered({ mode: 'Inject' })],
      says: 'Unknown NothingBrought',
      text: /somebody else is to bring/,
    },
  ],
  ({ profiles, spec, more = [], says, text }) => {
    const seen = scene([red, quay, grant('red'), claim('red', spec), ...profiles, ...more]);
    assert.equal(answer(seen, 'red'), says);
    assert.match(readyMessage(seen.status('PullSecretClaim', 'quay', 'red')), text);
  },
);

test('a claim of a namespace that the profile does not select brings nothing', () => {
  const seen = scene([red, stranger, quay, offered(), grant('*'), claim('stranger')]);
  assert.deepEqual(holders(seen), []);
});

interface BadClaim extends Case {
  readonly object: KubeObject;
  readonly problems: readonly string[];
}

table<BadClaim>(
  test,
  [
    {
      name: 'a slip in a field',
      reason: 'strict',
      object: claim('red', { profil: 'quay' }),
      problems: ['spec.profil: unknown field; must be one of "profile"'],
    },
    {
      name: 'a list',
      reason: 'strict',
      object: claim('red', { profile: ['quay'] }),
      problems: ['spec.profile: invalid value of type list: must be a string'],
    },
    {
      name: 'no spec',
      reason: 'strict',
      object: claim('red', null),
      problems: ['spec.profile: required value: must be the name of a PullSecretProfile'],
    },
    {
      name: 'no name of a profile',
      reason: 'strict',
      object: claim('red', { profile: 'A b' }),
      problems: ['spec.profile: invalid value "A b": must be the name of a PullSecretProfile'],
    },
  ],
  ({ object, problems }) => {
    const read = readPullSecretClaim(object);
    assert.deepEqual([read.profile, read.problems], ['', problems]);
  },
);

test('another offer is refused', () => {
  const read = readProfile(offered({ offer: 'onrequest' }));
  assert.ok(!read.ok);
  assert.match(read.problems.join(), /^spec\.offer: /);
});

test('pods get the names where they were asked for, by policy', () => {
  const injects = offered({ mode: 'InjectAndDistribute' });
  const seen = scene([red, blue, quay, injects, grant('red'), claim('red')]);
  const policy = seen.store.list({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicy',
  });
  const text = JSON.stringify(policy.map(({ spec }) => spec));
  assert.match(text, /kubernetes\.io\/metadata\.name[^,]* in \[\\+"red\\+"\]/);
  assert.ok(!text.includes('blue'));
});

test('a claim that nobody approved gives nothing, not even the name to pods; a grant that is taken back takes it', () => {
  const injects = offered({ mode: 'InjectAndDistribute' });
  const policyOf = (seen: Scene): string =>
    JSON.stringify(
      seen.store
        .list({ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingAdmissionPolicy' })
        .map(({ spec }) => spec),
    );
  const asked = scene([red, blue, quay, injects, claim('red'), claim('blue'), grant('blue')]);
  assert.ok(!policyOf(asked).includes('red\\"'), policyOf(asked));
  assert.match(policyOf(asked), /in \[\\+"blue\\+"\]/);
  const approved = asked.after([grant('red')]);
  assert.match(policyOf(approved), /in \[\\+"red\\+"\]/);
  assert.ok(!policyOf(approved).includes('blue'), 'taken back');
});

test.run();
