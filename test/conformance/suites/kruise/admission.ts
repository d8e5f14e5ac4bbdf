import { isDeepStrictEqual } from 'node:util';
import {
  readContent,
  readSidecarSet,
  type SidecarSetRevision,
} from '../../../../runtime/rules/injection/sidecar-set.ts';
import {
  injectSidecarSets,
  type SidecarSetPod,
} from '../../../../runtime/rules/injection/sidecar-set-injection.ts';
import type { KubeObject } from '../../../../runtime/rules/kubernetes/object.ts';
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
  readonly controllerRevisions?: readonly (Omit<SidecarSetRevision, 'containers' | 'imagePullSecrets'> & {
    spec: unknown;
  })[];
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
    file: 'runtime/rules/injection/sidecar-set-injection.ts',
    replace: 'containers === 0 && options.withoutContainers !== true',
    by: 'containers < 0',
  },
};

function admit(input: AdmissionCase): Expected {
  const own = input.pod.spec.imagePullSecrets ?? [];
  const untouched = {
    mutated: false,
    imagePullSecrets: own.map((reference) => reference.name ?? ''),
    injectedSidecarSets: [],
  };
  // What the webhook configuration and the policy's match constraints keep away.
  if (input.operation !== 'CREATE' || (input.subResource ?? '') !== '') return untouched;
  const injection = injectSidecarSets(
    podOf(input),
    input.sidecarSets.map(readSidecarSet),
    (input.controllerRevisions ?? []).map(({ spec, ...revision }) => ({ ...revision, ...readContent(spec) })),
  );
  if (injection.outcome === 'skipped') return untouched;
  if (injection.outcome === 'failed') return { error: 'internal', ...untouched };
  return {
    mutated: true,
    imagePullSecrets: injection.pullSecrets.merged,
    injectedSidecarSets: injection.sets,
  };
}

function podOf({ pod, requestNamespace, namespaces }: AdmissionCase): SidecarSetPod {
  const namespace = pod.metadata.namespace ?? requestNamespace;
  return {
    labels: pod.metadata.labels ?? {},
    namespaceLabels: namespaces.find(({ name }) => name === namespace)?.labels,
    imagePullSecrets: pod.spec.imagePullSecrets ?? [],
    phase: pod.status?.phase ?? '',
    deleting: pod.metadata.deletionTimestamp !== undefined,
  };
}
