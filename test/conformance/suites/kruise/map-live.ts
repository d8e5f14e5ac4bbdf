/** The compiled policy on a real API server: pods are created, and what is stored of them counts. */
import { readProfile } from '../../../../runtime/pull-secret-injection/kinds/profile.ts';
import {
  compileInjectionPolicy,
  INJECT_LABEL,
  injectionPlan,
} from '../../../../runtime/pull-secret-injection/plan/plan.ts';
import { missingControlPlane } from '../../../control-plane/build.ts';
import { type ControlPlane, startControlPlane } from '../../../control-plane/control-plane.ts';
import { eventually } from '../../../control-plane/eventually.ts';
import { createPod, readyNamespace, startPlane } from '../../../pull-secret-injection/live.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface LiveCase {
  readonly pod: readonly string[] | null;
  readonly serviceAccount: readonly string[] | null;
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly noPolicy?: boolean;
  readonly expected?: readonly string[];
  readonly expectedError?: string;
}

interface LiveInput extends LiveCase {
  readonly add: readonly string[];
}

type Answer = { readonly imagePullSecrets: readonly string[] } | { readonly error: string };

const NAMESPACE = 'live';
let plane: Promise<ControlPlane> | undefined;
let count = 0;

export const suite: ConformanceSuite<LiveInput, Answer> = {
  missing: missingControlPlane,
  cases: (document) => {
    const { add, cases } = document as { add: readonly string[]; cases: readonly LiveCase[] };
    return cases.map((one) => ({
      name: `${JSON.stringify(one.pod)} with account ${JSON.stringify(one.serviceAccount)}`,
      input: { ...one, add },
      expected: expectedOf(one),
    }));
  },
  answer: async (input) => {
    plane ??= withPolicy(input.add);
    return admit(await plane, input);
  },
  accepts: (actual, expected) =>
    'error' in expected
      ? 'error' in actual && withoutAccount(actual.error).includes(withoutAccount(expected.error))
      : JSON.stringify(actual) === JSON.stringify(expected),
  mutation: {
    file: 'runtime/pull-secret-injection/plan/plan.ts',
    replace: '(variables.have + variables.add).map',
    by: '(variables.add + variables.have).map',
  },
  finish: async () => {
    await (await plane)?.stop();
    plane = undefined;
  },
};

function expectedOf({ expected, expectedError }: LiveCase): Answer {
  if (expectedError !== undefined) return { error: expectedError };
  if (expected === undefined) throw new Error('a case has neither expected nor expectedError');
  return { imagePullSecrets: expected };
}

async function withPolicy(add: readonly string[]): Promise<ControlPlane> {
  const started = await startPlane({}, startControlPlane);
  await readyNamespace(started, NAMESPACE);
  const spec = { namespaceSelector: {}, selector: {}, secrets: add.map((name) => ({ name })) };
  const read = readProfile({ apiVersion: '', kind: '', metadata: { name: 'all' }, spec });
  if (!read.ok) throw new Error(read.problems.join());
  const compiled = compileInjectionPolicy(injectionPlan([read.profile]), {
    apiVersion: 'admissionregistration.k8s.io/v1',
    excludedNamespaces: [],
  });
  if (!compiled.ok) throw new Error('the policy does not compile');
  for (const object of [compiled.policy, compiled.binding]) await started.apply(object);
  await eventually(async () => {
    const created = await createPod(started, { name: `probe-${Date.now()}`, namespace: NAMESPACE });
    if (!('names' in created) || created.names.length === 0) throw new Error('the policy is not at work yet');
  });
  return started;
}

async function admit(on: ControlPlane, input: LiveInput): Promise<Answer> {
  count += 1;
  const account = `account-${count}`;
  await on.apply({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: {
      name: account,
      namespace: NAMESPACE,
      annotations: input.serviceAccountAnnotations ?? {},
    },
    imagePullSecrets: (input.serviceAccount ?? []).map((name) => ({ name })),
  });
  const created = await createPod(on, {
    name: `pod-${count}`,
    namespace: NAMESPACE,
    ...identity(input, account),
    ...(input.pod === null ? {} : { own: input.pod }),
    labels: input.noPolicy === true ? { [INJECT_LABEL]: 'false' } : {},
  });
  return 'refused' in created ? { error: created.refused } : { imagePullSecrets: created.names };
}

/** A mirror pod is bound to a node and has no ServiceAccount. */
function identity({ annotations }: LiveInput, account: string): object {
  if (annotations === undefined) return { account };
  return { annotations: { 'kubernetes.io/config.hash': 'x', ...annotations }, nodeName: 'node' };
}

/** The case does not say how the account is called. */
function withoutAccount(error: string): string {
  return error.replace(/service account \S+/, 'service account');
}
