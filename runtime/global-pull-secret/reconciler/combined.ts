/**
 * `combined-pull-secret` in the control plane namespace: what the OpenShift API server of a hosted cluster imports images with, which
 * runs beside no kubelet. With `mode: own` it holds what nodes get; otherwise it is looked at, and what it lacks is said. Pure.
 *
 * Source of the rule: openshift/hypershift#9617: its operator makes the Secret with the platform's entries when a cluster comes to be
 * and leaves it alone, and the hosted cluster's operator keeps it merged, the platform's entries winning.
 */
import { type ApplyObject, OWNER_LABEL, type Ref, type World } from '../../controller/contract.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import { operatorOf } from '../../rules/kubernetes/hypershift-operators.ts';
import { describeObject, type KubeObject, type SecretObject } from '../../rules/kubernetes/object.ts';
import type { Verdict } from '../../rules/kubernetes/pull-status.ts';
import type { Redacted } from '../../rules/redacted.ts';
import { pullSecretObject } from './merged-object.ts';
import { entryDigests } from './observed-verdicts.ts';
import { fromBase64, secretText } from './platform.ts';
import { isGivenToUs, isHeldByUs } from './takeover.ts';

/** In the control plane namespace of whichever cluster is looked at. */
export const COMBINED: Ref = { role: 'management', apiVersion: 'v1', kind: 'Secret', name: NAMES.combined };

export interface CombinedInput {
  /** Whether the fleet says that it is ours to make, and nobody else makes the objects of this system. */
  readonly own: boolean;
  /** Base64 of what nodes should get; undefined while nothing is known. */
  readonly value: Redacted<string> | undefined;
  /** What nodes get as long as somebody else decides. */
  readonly inForce: KubeObject | undefined;
}

export interface CombinedPlan {
  readonly apply: readonly ApplyObject[];
  /** A deployment may mount it: it is never pruned. */
  readonly keep: readonly Ref[];
  readonly verdicts: readonly Verdict[];
}

const NOTHING: CombinedPlan = { apply: [], keep: [], verdicts: [] };

/** Decides. A stand-alone API server reads the file of its node and needs none. */
export function planCombined(world: World, input: CombinedInput): CombinedPlan {
  if (world.scope.hostedCluster === undefined) return NOTHING;
  const namespace = world.scope.controlPlaneNamespace;
  const ref: Ref = { ...COMBINED, namespace };
  if (world.isUnreadable(ref)) return { apply: [], keep: [ref], verdicts: [unreadable(ref)] };
  const present = world.get(ref);
  if (input.own && (present === undefined || isHeldByUs(present)))
    return {
      apply: input.value === undefined ? [] : [write(namespace, input.value, present)],
      keep: [ref],
      verdicts: [],
    };
  if (present === undefined) return NOTHING;
  return { apply: [], keep: [ref], verdicts: [judged(present, input)] };
}

function unreadable({ kind, namespace, name }: Ref): Verdict {
  return {
    subject: describeObject({ kind, namespace, name }),
    verdict: 'Warning',
    reason: 'CombinedUnreadable',
    message:
      'whether image imports have what nodes have is not known: this account may not read the Secret; apply the rights that came with this version',
  };
}

function write(namespace: string, value: Redacted<string>, present: KubeObject | undefined): ApplyObject {
  // The type of a Secret cannot change.
  const type = (present as SecretObject | undefined)?.type;
  const object = pullSecretObject({
    name: NAMES.combined,
    namespace,
    value,
    ...(type === undefined ? {} : { type }),
  });
  return { role: 'management', object, adopt: present !== undefined && isGivenToUs(present) };
}

/** What image imports lack of what nodes get. */
function judged(present: KubeObject, { own, value, inForce }: CombinedInput): Verdict {
  const { kind, metadata } = present;
  const subject = describeObject({ kind, namespace: metadata.namespace, name: metadata.name });
  const text = value === undefined ? inForce && secretText(inForce) : fromBase64(value);
  const has = entryDigests(secretText(present));
  const lacking = [...entryDigests(text)].filter(([key, digest]) => has.get(key) !== digest);
  if (lacking.length === 0)
    return {
      subject,
      verdict: 'Accepted',
      reason: 'InCombinedPullSecret',
      message: 'image imports have what nodes have',
    };
  const [first] = lacking;
  const names = `"${first?.[0] ?? ''}"${lacking.length > 1 ? ` and ${lacking.length - 1} more` : ''}`;
  return {
    subject,
    verdict: 'Warning',
    reason: 'ImageImportsLack',
    message: `image imports of the OpenShift API server lack ${names}, which nodes have: ${wayOut(present, own)}`,
  };
}

function wayOut(present: KubeObject, own: boolean): string {
  if (present.metadata.labels?.[OWNER_LABEL] !== undefined)
    return 'it was made with mode "own", which is no longer set: set it again, or delete the Secret';
  const maker = operatorOf(present) ?? 'somebody else';
  return own
    ? `it is kept by ${maker}; annotate it with pullwright.dev/adopt: "true" to hand it over`
    : `it is kept by ${maker}; where that one does not merge it, set mode "own" and annotate it with pullwright.dev/adopt: "true"`;
}
