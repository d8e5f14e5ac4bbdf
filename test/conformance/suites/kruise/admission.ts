import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../../../../runtime/core/kubernetes/object.ts';
import { ObjectStore } from '../../../../runtime/engine/store.ts';
import { DEFAULT_OPTIONS } from '../../../../runtime/pull-secret-injection/options.ts';
import { planInjection } from '../../../../runtime/pull-secret-injection/plan/plan.ts';
import { namespaceLabels, planIn } from '../../../../runtime/pull-secret-injection/reconciler/view.ts';
import { admitPod, isNewPod } from '../../../../runtime/pull-secret-injection/webhook/server.ts';
import { readerOf } from '../../../pull-secret-injection/scene.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Expected {
  readonly error?: string;
  readonly mutated: boolean;
  readonly imagePullSecrets: readonly string[];
  readonly injectedSidecarSets: readonly string[];
  /** Groups of sets whose order is open upstream. Ours is by name, which is one of the allowed ones. */
  readonly orderUndefinedAmongSets?: readonly (readonly string[])[];
  /** Other allowed lists, where upstream draws. */
  readonly imagePullSecretsAnyOf?: readonly (readonly string[])[];
}

interface AdmissionCase {
  readonly name: string;
  readonly operation: string;
  readonly subResource?: string;
  readonly requestNamespace: string;
  readonly namespaces: readonly { name: string; labels?: Record<string, string> }[];
  readonly pod: {
    readonly metadata: { namespace?: string; labels?: Record<string, string>; deletionTimestamp?: string };
    readonly spec: { imagePullSecrets?: readonly { name?: string }[] };
    readonly status?: { phase?: string };
  };
  readonly sidecarSets: readonly KubeObject[];
  readonly controllerRevisions?: readonly {
    readonly name: string;
    readonly sidecarSet: string;
    readonly customVersion?: string;
    readonly revision: number;
    readonly spec: unknown;
  }[];
}

export const suite: ConformanceSuite<AdmissionCase, Expected> = {
  cases: (document) =>
    (document as { cases: readonly (AdmissionCase & { expected: Expected })[] }).cases.map((one) => ({
      name: one.name,
      input: one,
      expected: one.expected,
    })),
  answer: admit,
  accepts: (actual, expected) => {
    const { imagePullSecrets, ...rest } = actual;
    const { orderUndefinedAmongSets, imagePullSecretsAnyOf, imagePullSecrets: names, ...wanted } = expected;
    // Our order among those sets is one of the allowed ones, so an open order needs no second look.
    const allowed = [names, ...(imagePullSecretsAnyOf ?? [])];
    return (
      (orderUndefinedAmongSets === undefined || Array.isArray(orderUndefinedAmongSets)) &&
      isDeepStrictEqual(rest, wanted) &&
      allowed.some((list) => isDeepStrictEqual(list, imagePullSecrets))
    );
  },
  loosens: ['orderUndefinedAmongSets', 'imagePullSecretsAnyOf'],
  mutation: {
    file: 'runtime/pull-secret-injection/webhook/server.ts',
    replace: 'if (planned.names.length === 0) return',
    by: 'if (planned.names.length > 0) return',
  },
};

/** Answer of the webhook, with the plan that the policy is also compiled from. */
function admit(input: AdmissionCase): Expected {
  const own = (input.pod.spec.imagePullSecrets ?? []).map(({ name }) => name ?? '');
  const untouched = { mutated: false, imagePullSecrets: own, injectedSidecarSets: [] };
  const { operation, subResource = '', requestNamespace, pod } = input;
  const resource = { group: '', version: 'v1', resource: 'pods' };
  if (!isNewPod({ uid: 'u', operation, resource, subResource, object: {} })) return untouched;
  const store = storeOf(input);
  const reader = readerOf(store);
  const options = { ...DEFAULT_OPTIONS, excludedNamespaces: [] };
  const plan = planIn({ reader, options });
  const name = pod.metadata.namespace ?? requestNamespace;
  const found = store.get({ apiVersion: 'v1', kind: 'Namespace', name });
  const labels = found === undefined ? undefined : namespaceLabels(found);
  const answer = admitPod(reader, {
    pod,
    namespace: name,
    namespaceLabels: labels,
    plan,
    options,
  });
  if (answer.outcome === 'skipped') return untouched;
  const { by } = planInjection(plan, { labels: pod.metadata.labels ?? {}, namespaceLabels: labels });
  const sets = by.map(({ source }) => source.replace(/^sidecarset\//i, '')).sort();
  // The annotation that says who added what is ours alone.
  const patch = answer.patch.find(({ path }) => path === '/spec/imagePullSecrets');
  return {
    mutated: sets.length > 0,
    imagePullSecrets:
      patch === undefined
        ? own
        : (patch.value as readonly { name?: string }[]).map((reference) => reference.name ?? ''),
    injectedSidecarSets: sets,
  };
}

/** The cluster of the case, with the revisions as Kruise keeps them. */
function storeOf({ namespaces, sidecarSets, controllerRevisions = [] }: AdmissionCase): ObjectStore {
  const store = new ObjectStore();
  for (const { name, labels = {} } of namespaces)
    store.set({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
  for (const set of sidecarSets)
    store.set({ ...set, apiVersion: 'apps.kruise.io/v1alpha1', kind: 'SidecarSet' });
  for (const { name, sidecarSet, customVersion, revision, spec } of controllerRevisions)
    store.set({
      apiVersion: 'apps/v1',
      kind: 'ControllerRevision',
      metadata: {
        name,
        namespace: 'kruise-system',
        labels: {
          'kruise.io/sidecarset-name': sidecarSet,
          ...(customVersion === undefined
            ? {}
            : { 'apps.kruise.io/sidecarset-custom-version': customVersion }),
        },
      },
      revision,
      data: { spec },
    });
  return store;
}
