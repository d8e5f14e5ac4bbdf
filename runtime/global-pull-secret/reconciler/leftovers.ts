/** What others left under the names of this system: what is removed with a takeover, and what only a person can clear away. Pure. */
import { type Outcome, OWNER_LABEL, type Problem, type Ref } from '../../controller/contract.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { Verdict } from '../../rules/kubernetes/pull-status.ts';
import type { Elsewhere } from './managed-elsewhere.ts';
import { isGivenToUs, isHeldByUs } from './takeover.ts';

/** What may have to go. */
export interface Leftovers {
  /** The merge, when there is nothing to merge. */
  readonly global: KubeObject | undefined;
  readonly daemonSet: KubeObject | undefined;
  /** Whether a person said that all of it is ours. */
  readonly takes: boolean;
}

/**
 * Objects of others that go. A DaemonSet is not taken over in place: server-side apply would leave the arguments and the volumes of
 * its maker in it.
 */
export function removals({ global, daemonSet, takes }: Leftovers): NonNullable<Outcome['remove']> {
  const merge = global !== undefined && (takes || isGivenToUs(global)) ? [global] : [];
  const workload = takes && daemonSet !== undefined && !isHeldByUs(daemonSet) ? [daemonSet] : [];
  return [...merge, ...workload].flatMap((object) => {
    const { uid } = object.metadata;
    return uid === undefined ? [] : [{ ...refTo(object), uid }];
  });
}

/** A merge of somebody else that stays although there is nothing to merge: nodes prefer it to the platform's pull secret. */
export function foreignMerge(global: KubeObject | undefined): readonly Problem[] {
  if (global === undefined || isHeldByUs(global)) return [];
  return [
    {
      disposition: 'terminal',
      code: 'ForeignObject',
      message: `Cannot remove "Secret/${NAMES.namespace}/${NAMES.global}": it was not made by Pullwright, and nodes use it instead of the platform's pull secret`,
      hint: 'Delete it, or annotate it with pullwright.dev/adopt: "true"',
      regarding: refTo(global),
    },
  ];
}

/** A DaemonSet with the marks of a rendered tree, where git is not the one to bring it. */
export function gitVerdicts(
  daemonSet: KubeObject | undefined,
  observed: Elsewhere | undefined,
  delivery: 'reconciler' | 'gitops',
): readonly Verdict[] {
  const labels = daemonSet?.metadata.labels ?? {};
  if (labels['app.kubernetes.io/part-of'] !== 'pullwright' || labels[OWNER_LABEL] !== undefined) return [];
  const subject = `DaemonSet ${NAMES.namespace}/${NAMES.syncer}`;
  const says = (reason: string, message: string): Verdict => ({
    subject,
    verdict: 'Warning',
    reason,
    message,
  });
  if (observed?.reason === 'Observing')
    return [
      says(
        'GitOverwrites',
        'has the marks of a rendered tree, and HyperShift makes it too: where a GitOps tool still applies it, set mode "observe" in the fleet, so that the two do not overwrite each other',
      ),
    ];
  if (delivery === 'gitops' || observed !== undefined) return [];
  return [
    says(
      'LeftInGit',
      'was brought by git, which no longer renders it, so that it never changes: let the GitOps tool prune it, or delete it, and it is created again',
    ),
  ];
}

function refTo({ apiVersion, kind, metadata }: KubeObject): Ref {
  const { namespace, name } = metadata;
  return { role: 'hosted', apiVersion, kind, ...(namespace === undefined ? {} : { namespace }), name };
}
