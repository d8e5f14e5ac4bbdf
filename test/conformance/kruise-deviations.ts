/** Deliberate differences from Kruise for pull secret injection. */
import { type Deviation, deviates } from './suite.ts';

interface Admission {
  readonly pod: { readonly spec: { readonly imagePullSecrets?: readonly { readonly name?: string }[] } };
  readonly sidecarSets: readonly {
    readonly spec?: {
      readonly selector?: { readonly matchExpressions?: readonly { readonly operator: string }[] };
      readonly injectionStrategy?: { readonly revision?: { readonly revisionName?: string } };
    };
  }[];
  readonly controllerRevisions?: readonly { readonly name: string }[];
}

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'];
const NEVER_REFUSED =
  'no pod is refused for the sake of a set: one that cannot be read, or whose revision is gone, is left out, and its status says so';

export const KRUISE_DEVIATIONS: Readonly<Record<string, readonly Deviation[]>> = {
  'kruise/admission': [
    deviates(NEVER_REFUSED, (input) =>
      (input as Admission).sidecarSets.some(({ spec }) =>
        spec?.selector?.matchExpressions?.some(({ operator }) => !OPERATORS.includes(operator)),
      ),
    ),
    deviates(NEVER_REFUSED, (input) => {
      const { sidecarSets, controllerRevisions = [] } = input as Admission;
      const wanted = sidecarSets.flatMap(({ spec }) => spec?.injectionStrategy?.revision?.revisionName ?? []);
      return wanted.some((name) => !controllerRevisions.some((revision) => revision.name === name));
    }),
    deviates(
      'a pod to which no secret is added keeps its own list as it is, names that stand twice in it too',
      (input) => {
        const names = ((input as Admission).pod.spec.imagePullSecrets ?? []).map(({ name }) => name);
        return new Set(names).size < names.length;
      },
    ),
  ],
  'kruise/map-live': [
    deviates(
      'the policy leaves mirror pods alone, so that the API server takes them',
      (input) => 'kubernetes.io/config.mirror' in ((input as { annotations?: object }).annotations ?? {}),
    ),
  ],
};
