// deadline: 300 s
// needs: control plane
/** What a real API server makes of pods: with the compiled policy, with the webhook over TLS, and with neither. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { PullSecretProfile } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import type { SidecarSet } from '../../runtime/pull-secret-injection/kinds/sidecar-set.ts';
import type { EnforcingAccount } from '../../runtime/pull-secret-injection/plan/plan.ts';
import {
  compileInjectionPolicy,
  INJECTED_ANNOTATION,
  injectedText,
  injectionPlan,
  MAX_INJECTED_TEXT,
  mergeImagePullSecrets,
  planInjection,
} from '../../runtime/pull-secret-injection/plan/plan.ts';
import { eventually } from '../control-plane/eventually.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { drawnProfiles, drawnSets, draws, pickFrom, profileOf } from './drawn-plans.ts';
import { createPod, type PodInput, postPod, readyNamespace, startPlane } from './live.ts';

const V1 = 'admissionregistration.k8s.io/v1';

const plane = await startPlane();
const spaces: Readonly<Record<string, Record<string, string>>> = {
  one: { env: 'prod' },
  two: { env: 'dev', team: 'a' },
  three: {},
  'pullwright-system': {},
  'opted-out': { 'pullwright.dev/inject': 'false' },
};
await Promise.all(Object.entries(spaces).map(([name, labels]) => readyNamespace(plane, name, labels)));

let marker = 0;
/** Applies a plan, with a marker profile that shows when the API server has taken it. */
const usePlan = async (
  profiles: readonly PullSecretProfile[],
  sets: readonly SidecarSet[] = [],
  enforcing: readonly EnforcingAccount[] = [],
): Promise<void> => {
  marker += 1;
  const sign = `marker-${marker}`;
  const signal = profileOf('zz-marker', {
    namespaceSelector: {},
    selector: { matchLabels: { marker: 'yes' } },
    secrets: [{ name: sign }],
  });
  const compiled = compileInjectionPolicy(injectionPlan([...profiles, signal], sets), {
    apiVersion: V1,
    excludedNamespaces: ['pullwright-system'],
    enforcing,
  });
  assert.ok(compiled.ok);
  for (const object of [compiled.policy, compiled.binding]) await plane.apply(object);
  await eventually(async () => {
    const created = await createPod(plane, {
      name: `${sign}-${Date.now()}`,
      namespace: 'three',
      labels: { marker: 'yes' },
    });
    assert.ok('names' in created && created.names.includes(sign));
  });
};
let count = 0;
const admitted = async (input: Omit<PodInput, 'name'>): Promise<unknown> => {
  count += 1;
  const created = await createPod(plane, { name: `p-${count}`, ...input });
  return 'names' in created ? created.names : created.refused;
};
/** Annotation of the pod that names the writer of its entries. */
const told = async (input: Omit<PodInput, 'name'>): Promise<string> => {
  count += 1;
  const made = await postPod(plane, { name: `t-${count}`, ...input });
  assert.ok('pod' in made, JSON.stringify(made));
  const { annotations = {} } = made.pod.metadata as { annotations?: Record<string, string> };
  const { [INJECTED_ANNOTATION]: text = '', ...rest } = annotations;
  assert.deepEqual(rest, input.annotations ?? {}, 'its own annotations stay');
  return text;
};

test('the policy answers as the rule does, for drawn plans and pods', async () => {
  const draw = draws(20_261_121);
  const pick = <T>(list: readonly T[]): T => pickFrom(draw, list);
  for (let round = 0; round < 6; round++) {
    const profiles = drawnProfiles(draw);
    const sets = drawnSets(draw);
    await usePlan(profiles, sets);
    const plan = injectionPlan(profiles, sets);
    for (let at = 0; at < 12; at++) {
      const namespace = pick(['one', 'two', 'three']);
      const labels = {
        ...(draw(2) === 0 ? { app: pick(['web', 'a']) } : {}),
        ...(draw(2) === 0 ? { tier: 'prod' } : {}),
      };
      const own = pick([[], ['a'], ['q', 'q', 'x'], ['b', 'a']]);
      const { names, by } = planInjection(plan, {
        labels,
        namespaceLabels: { ...spaces[namespace], 'kubernetes.io/metadata.name': namespace },
      });
      const references = own.map((name) => ({ name }));
      const wanted = names.length === 0 ? own : mergeImagePullSecrets(references, names).merged;
      assert.deepEqual(
        await admitted({ namespace, labels, own }),
        wanted,
        JSON.stringify({ plan, namespace, labels, own }),
      );
      const annotations = draw(2) === 0 ? { 'example.com/own': 'x' } : {};
      assert.equal(
        await told({ namespace, labels, own, annotations }),
        injectedText(by, mergeImagePullSecrets(references, names).added),
        JSON.stringify({ plan, namespace, labels, own }),
      );
    }
  }
});

interface LiveCase {
  readonly pod: readonly string[] | null;
  readonly serviceAccount: readonly string[];
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>>;
  readonly annotations?: object;
  readonly noPolicy?: boolean;
  readonly expected?: readonly string[];
  readonly expectedError?: string;
}
const live = JSON.parse(
  readFileSync(new URL('../conformance/cases/kruise/map-live.json', import.meta.url), 'utf8'),
) as { add: readonly string[]; cases: readonly LiveCase[] };

/** The recorded cases, through whatever is at work in the cluster now. */
const recorded = async (account: string): Promise<void> => {
  const cases = live.cases.filter(
    ({ noPolicy, annotations }) => noPolicy !== true && annotations === undefined,
  );
  for (const [index, one] of cases.entries()) {
    const name = `${account}-${index}`;
    await plane.apply({
      ...meta('v1 ServiceAccount', {
        name,
        namespace: 'three',
        annotations: one.serviceAccountAnnotations ?? {},
      }),
      imagePullSecrets: one.serviceAccount.map((secret) => ({ name: secret })),
    });
    const own = one.pod === null ? {} : { own: one.pod };
    const answer = await admitted({ namespace: 'three', account: name, ...own });
    if (one.expected !== undefined) assert.deepEqual(answer, one.expected, name);
    else if (account === 'policy')
      assert.match(
        String(answer),
        /imagePullSecrets\[2\]\.name="s0" is not allowed because service account policy-/,
      );
    else assert.deepEqual(answer, one.serviceAccount, 'the webhook leaves such accounts alone');
  }
};

const all = profileOf('all', {
  namespaceSelector: {},
  selector: {},
  secrets: live.add.map((name) => ({ name })),
});

test('the recorded cases of a live policy', async () => {
  await usePlan([all]);
  await recorded('policy');
});

test('the policy skips accounts that enforce mountable secrets, unless they list the added ones', async () => {
  const account = (name: string, listed: readonly string[]): EnforcingAccount => ({
    namespace: 'two',
    name,
    listed,
  });
  const accounts = [account('strict', []), account('lists', ['s0', 's1', ...live.add])];
  for (const { namespace, name, listed } of accounts)
    await plane.apply({
      ...meta('v1 ServiceAccount', {
        name,
        namespace,
        annotations: { 'kubernetes.io/enforce-mountable-secrets': 'true' },
      }),
      imagePullSecrets: listed.map((secret) => ({ name: secret })),
    });
  await usePlan([all], [], accounts);
  assert.deepEqual(await admitted({ namespace: 'two', account: 'strict' }), []);
  assert.equal(await told({ namespace: 'two', account: 'strict' }), '');
  assert.deepEqual(await admitted({ namespace: 'two', account: 'lists', own: ['s1'] }), [
    's1',
    ...live.add.filter((name) => name !== 's1'),
  ]);
  assert.deepEqual(await admitted({ namespace: 'two' }), live.add, 'another account of the namespace');
});

const mirror = {
  annotations: { 'kubernetes.io/config.mirror': 'x', 'kubernetes.io/config.hash': 'x' },
  nodeName: 'node',
};

test('mirror pods, our own namespace and who opted out are left alone', async () => {
  assert.deepEqual(
    await admitted({ namespace: 'one', ...mirror }),
    [],
    'the API server takes the mirror pod',
  );
  assert.deepEqual(await admitted({ namespace: 'pullwright-system' }), []);
  assert.deepEqual(await admitted({ namespace: 'opted-out' }), []);
  assert.deepEqual(await admitted({ namespace: 'one', labels: { 'pullwright.dev/inject': 'false' } }), []);
  assert.deepEqual(await admitted({ namespace: 'one', own: ['', ''] }), ['', ...live.add]);
});

test('a hundred pods see one order', async () => {
  const profiles = ['e', 'b', 'd', 'a', 'c'].map((name) =>
    profileOf(name, { namespaceSelector: {}, selector: {}, secrets: [{ name }] }),
  );
  await usePlan(profiles);
  const seen = await Promise.all(Array.from({ length: 100 }, () => admitted({ namespace: 'one' })));
  assert.deepEqual([...new Set(seen.map((names) => JSON.stringify(names)))], ['["a","b","c","d","e"]']);
});

test('500 profiles fit into one policy, and a pod that each of them selects gets every name', async () => {
  const many = Array.from({ length: 500 }, (_, at) =>
    profileOf(`m${at}`, { namespaceSelector: {}, selector: {}, secrets: [{ name: `n${at}` }] }),
  );
  await usePlan(many);
  assert.equal(((await admitted({ namespace: 'one' })) as string[]).length, 500);
  const text = await told({ namespace: 'one', own: ['n3'] });
  assert.ok(text.startsWith('profile/m0: n0; profile/m1: n1; profile/m10: n10; '), text);
  assert.ok(!text.includes('profile/m3: ') && text.includes('profile/m499: n499'), text);
});

test('a long list of who added what is cut; the names are all there', async () => {
  const long = `a-profile-with-a-name-of-some-length-${'x'.repeat(30)}`;
  const many = Array.from({ length: 300 }, (_, at) =>
    profileOf(`${long}-${at}`, { namespaceSelector: {}, selector: {}, secrets: [{ name: `n${at}` }] }),
  );
  await usePlan(many);
  assert.equal(((await admitted({ namespace: 'one' })) as string[]).length, 300);
  const text = await told({ namespace: 'one' });
  assert.deepEqual([text.length, text.slice(-3)], [MAX_INJECTED_TEXT + 3, '...']);
});
