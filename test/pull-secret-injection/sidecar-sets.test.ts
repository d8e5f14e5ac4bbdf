/** Status of a SidecarSet: the names that pods actually get, and the state of the Secrets that it distributes. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { statusRows } from '../../runtime/diagnose/commands/status.ts';
import { DEFAULT_OPTIONS, type InjectionOptions } from '../../runtime/pull-secret-injection/options.ts';
import { planInjection } from '../../runtime/pull-secret-injection/plan/plan.ts';
import { planIn } from '../../runtime/pull-secret-injection/reconciler/view.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import {
  conditionOf,
  grant,
  KRUISE,
  namespace,
  profile,
  readerOf,
  type Scene,
  scene,
  source,
} from './scene.ts';

const shop = namespace('shop', { team: 'a' });
const CONTAINERS = [{ name: 'c', image: 'registry.example.com/side:1' }];

function set(spec: object = {}, annotations: Record<string, string> = {}): KubeObject {
  return {
    ...meta('apps.kruise.io/v1beta1 SidecarSet', { name: 'side', generation: 1, annotations }),
    spec: {
      selector: { matchLabels: { app: 'web' } },
      namespaceSelector: { matchLabels: { team: 'a' } },
      imagePullSecrets: [{ name: 'new' }],
      containers: CONTAINERS,
      ...spec,
    },
  };
}

function revision(name: string, secret: string, at = 1, more: Record<string, string> = {}): KubeObject {
  const labels = { 'kruise.io/sidecarset-name': 'side', ...more };
  return {
    ...meta('apps/v1 ControllerRevision', { name, namespace: 'kruise-system', labels }),
    revision: at,
    data: { spec: { imagePullSecrets: [{ name: secret }], containers: CONTAINERS } },
  };
}

const V1 = { 'apps.kruise.io/sidecarset-custom-version': 'v1' };
const REVISIONS = [
  revision('side-1', 'old'),
  revision('side-3', 'versioned', 3, V1),
  revision('side-2', 'older', 2, V1),
  revision('theirs', 'theirs', 8, { ...V1, 'kruise.io/sidecarset-name': 'other' }),
];

function readyOf(seen: Scene): string {
  const found = seen.status('SidecarSet', 'side')?.conditions.find(({ type }) => type === 'Ready');
  return `${found?.status} ${found?.reason}: ${found?.message}`;
}

interface Row extends Case {
  /** @default {PARTIAL beside an update, else none} */
  readonly pin?: object;
  readonly update?: object;
  readonly options?: Partial<InjectionOptions>;
  readonly says: string | RegExp;
}

const PARTIAL = { revisionName: 'side-1', policy: 'Partial' };
const NEXT = { selector: { matchLabels: { ring: 'next' } } };
const INJECTED = 'True Injecting: imagePullSecrets are injected: ';

const ROWS: readonly Row[] = [
  { name: 'no pin', says: `${INJECTED}new` },
  {
    name: 'pinned by name',
    reason: 'pods get the old name, whatever the spec lists',
    pin: { revisionName: 'side-1' },
    says: `${INJECTED}old, from the pinned revision "side-1"`,
  },
  {
    name: 'pinned by version',
    reason: 'the newest of the version, of this set, whatever the order',
    pin: { customVersion: 'v1' },
    says: `${INJECTED}versioned, from the pinned custom version "v1"`,
  },
  {
    name: 'pinned by both',
    reason: 'the name is more exact',
    pin: { revisionName: 'side-1', customVersion: 'v1' },
    says: `${INJECTED}old, from the pinned revision "side-1"`,
  },
  {
    name: 'a part of the pods, and the update stands still',
    reason: 'then no pod gets the current content',
    update: { paused: true },
    says: `${INJECTED}old, from the pinned revision "side-1"`,
  },
  {
    name: 'all of them held back',
    update: { partition: '100%' },
    says: `${INJECTED}old, from the pinned revision "side-1"`,
  },
  {
    name: 'a number of pods held back',
    update: { partition: 3 },
    says: `${INJECTED}new`,
  },
  {
    name: 'two sorts of pods',
    update: NEXT,
    says: `${INJECTED}new, into pods that updateStrategy.selector selects; old, from the pinned revision "side-1", into pods that updateStrategy.selector does not select`,
  },
  {
    name: 'a part of the pods, by chance',
    reason: 'what pods get instead is said',
    update: { partition: '40%' },
    says: /^False PartialNotDrawn: .*40% is not applied per pod \(revision "side-1" has old\)\. Pods get: new\. /,
  },
  {
    name: 'no such revision',
    reason: 'which one, where it was looked for, and what comes of it',
    pin: { revisionName: 'never' },
    says: /^False RevisionMissing: .*revision "never", but namespace "kruise-system" has no such .*the set is not injected/,
  },
  {
    name: 'a selector of the update that nobody can read',
    reason: 'the revision is there: the selector is to be corrected',
    update: { selector: { matchExpressions: [{ key: 'a', operator: 'Like' }] } },
    says: /^False SelectorInvalid: spec\.updateStrategy\.selector, .*"Like" is not .*until it is corrected/,
  },
];

table(test, ROWS, ({ update, pin = update && PARTIAL, options, says }) => {
  const spec = {
    injectionStrategy: pin === undefined ? {} : { revision: pin },
    updateStrategy: update ?? {},
  };
  const said = readyOf(scene([shop, set(spec), ...REVISIONS], options));
  if (typeof says === 'string') assert.equal(said, says);
  else assert.match(said, says);
});

test('Partial with a selector: pods outside of it get the pinned content, by plan and by policy', () => {
  const pin = { injectionStrategy: { revision: PARTIAL } };
  const seen = scene([shop, set({ ...pin, updateStrategy: NEXT }), ...REVISIONS]);
  const plan = planIn({ reader: readerOf(seen.store), options: DEFAULT_OPTIONS });
  const names = (labels: Record<string, string>) =>
    planInjection(plan, { labels: { app: 'web', ...labels }, namespaceLabels: { team: 'a' } }).names;
  assert.deepEqual([names({ ring: 'next' }), names({})], [['new'], ['old']]);
  const policy = seen.store.list({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicy',
  });
  assert.match(JSON.stringify(policy), /!\(\(\\"ring\\" in variables\.l/);
});

const BRINGS = { 'pullwright.dev/source-namespace': 'platform' };
const platform = namespace('platform');

test('a set that brings its Secrets says what keeps them from coming, and comes back', () => {
  const good = source('platform/new', ['new.example.com']);
  const seen = scene([shop, platform, set({}, BRINGS)]);
  assert.match(readyOf(seen), /^False SourceMissing: Secret "platform\/new" does not exist .*1 of 1 names/);
  const events = seen.result.reports.flatMap((report) => report.events);
  assert.ok(events.some(({ regarding, reason }) => regarding.name === 'side' && reason === 'SourceMissing'));
  const ungranted = seen.after([source('platform/new', ['new.example.com'], 'nobody')]);
  assert.match(readyOf(ungranted), /^False NotGranted: /);
  const brought = ungranted.after([good]);
  assert.deepEqual(brought.registries('shop', 'new'), ['new.example.com']);
  assert.equal(readyOf(brought), `${INJECTED}new`);
  assert.equal(conditionOf(brought.status('SidecarSet', 'side'), 'Granted'), 'True AsWanted');
});

test('what the pinned revision names is brought, and is missed, too', () => {
  const pinned = set({ injectionStrategy: { revision: { revisionName: 'side-1' } } }, BRINGS);
  const seen = scene([shop, platform, pinned, ...REVISIONS, source('platform/new', ['new.example.com'])]);
  assert.match(readyOf(seen), /^False SourceMissing: Secret "platform\/old" does not exist/);
  const brought = seen.after([source('platform/old', ['old.example.com'])]);
  assert.deepEqual(brought.registries('shop', 'old'), ['old.example.com']);
  assert.equal(readyOf(brought), `${INJECTED}old, from the pinned revision "side-1"`);
});

test('beside Kruise the PullStatus says it', () => {
  const seen = scene([shop, platform, namespace('pullwright-system'), set({}, BRINGS), KRUISE]);
  const said = (one: Scene): string | undefined =>
    conditionOf(one.status('PullStatus', 'sidecarset-side', 'pullwright-system'), 'Ready');
  assert.equal(said(seen), 'False SourceMissing');
  assert.equal(said(seen.after([source('platform/new', ['new.example.com'])])), 'True LeftToKruise');
});

test('a set that loses a name is told nothing that no SidecarSet can do', () => {
  const other = profile('team', {
    secrets: [{ name: 'new', sources: [{ namespace: 'platform', name: 'quay' }] }],
  });
  const sources = [source('platform/quay', ['quay.io']), source('platform/new', ['new.example.com'])];
  const seen = scene([shop, platform, other, set({}, BRINGS), ...sources]);
  assert.match(readyOf(seen), /^False Collision: "team" delivers a different Secret "new"/);
  assert.doesNotMatch(readyOf(seen), /successor/);
});

test('`status` lists the sets that we report on, and grants', () => {
  const seen = scene([
    shop,
    platform,
    set({}, BRINGS),
    grant({ secrets: [{ name: 'new' }], namespaces: ['shop'] }),
  ]);
  const kruises = { ...set(), metadata: { name: 'kruises' }, status: { matchedPods: 3 } };
  seen.store.set(kruises);
  const rows = statusRows(seen.store).map(({ subject, state, check }) => `${subject} ${state} ${check}`);
  assert.deepEqual(
    rows.filter((row) => !row.startsWith('Deployment')),
    ['SidecarSet/side Attention SourceMissing', 'PullSecretGrant/platform/teams Progressing SourceMissing'],
  );
});
