/** One namespace: its copies, and a PullStatus if its owner must act. */

import { readiness } from '../../core/kubernetes/conditions.ts';
import type { Apply, Reader, Result } from '../../engine/contract.ts';
import { reportPullStatus } from '../../engine/pull-status.ts';
import { isTenants } from '../causes.ts';
import { namespaceRef, secretRef } from '../names.ts';
import { type InjectionOptions, RECONCILER_NAME } from '../options.ts';
import { type Copy, type CopyContext, copiesFor, keptUnread, revokedIn, type Trouble } from './copies.ts';
import { heldIn } from './removals.ts';
import { expiryOf } from './sources.ts';
import { distributionIn, isTerminating, namespaceLabels, serves } from './view.ts';

/** Requeue interval for held copies: fewer of them may be due for removal by then. */
const HELD_AGAIN_MS = 30_000;
/** Requeue interval for a name that a Secret of another type has: such Secrets are not watched. */
const TAKEN_AGAIN_MS = 60_000;

/** Reconciles one namespace. */
export function reconcileNamespace(reader: Reader, name: string, options: InjectionOptions): Result {
  const namespace = reader.get(namespaceRef(name));
  if (namespace === undefined) return { retain: 'all' };
  // A terminating namespace accepts no new objects and deletes its content eventually; revoked copies are deleted at once.
  if (isTerminating(namespace)) return { retain: 'all', remove: revokedIn({ reader, namespace, options }) };
  const context = { reader, distribution: distributionIn(reader), namespace, options };
  const copies = copiesFor(context);
  // Problems that the namespace's owner cannot fix are reported once, by the profile.
  const troubled = copies.flatMap(({ trouble, ...copy }) =>
    trouble !== undefined && isTenants(trouble.reason) ? [{ ...copy, trouble }] : [],
  );
  const reported = reportOf(reader, name, troubled);
  const kept = copies.filter(({ action }) => action === 'keep' || action === 'foreign');
  const held = heldIn(context, copies).map(({ metadata }) => secretRef(name, metadata.name));
  const waits = waitsOf(context);
  if (held.length > 0) waits.push(HELD_AGAIN_MS);
  if (troubled.some(({ action }) => action === 'write')) waits.push(TAKEN_AGAIN_MS);
  return {
    ...reported,
    apply: [...copies.flatMap(applyOf), ...(reported.apply ?? [])],
    retain: [...kept.map((copy) => copy.ref), ...keptUnread(context), ...held],
    // A person must act, so a retry is useless.
    errors: troubled.map(({ trouble: { reason: code, message }, ref: regarding }) => ({
      retryPolicy: 'terminal',
      code,
      message,
      regarding,
    })),
    ...(waits.length === 0 ? {} : { requeueAfterMs: Math.min(...waits) }),
  };
}

/** Delays until the next source of each profile expires. */
function waitsOf({ reader, distribution, namespace, options }: CopyContext): number[] {
  const labels = namespaceLabels(namespace);
  return distribution.distributors
    .filter((one) => one.copies.removeAfterMs !== undefined && serves(one, labels, options))
    .flatMap((one) => expiryOf(reader, one, options).nextMs ?? []);
}

function applyOf({ action, object, adopt }: Copy): readonly Apply[] {
  if (action !== 'write' || object === undefined) return [];
  return [{ role: 'hosted', object, plain: true, ...(adopt === true ? { forceOwnership: true } : {}) }];
}

function reportOf(
  reader: Reader,
  name: string,
  troubled: readonly (Copy & { readonly trouble: Trouble })[],
): Pick<Result, 'apply' | 'status' | 'events'> {
  const [first] = troubled;
  if (first === undefined) return {};
  const said = reportPullStatus(reader, 'hosted', {
    reporter: RECONCILER_NAME,
    about: { apiVersion: 'v1', kind: 'Namespace', namespace: name, name },
    conditions: readiness('stalled', first.trouble),
    verdicts: troubled.map(({ name: subject, action, distributor, trouble }) => ({
      subject,
      verdict: action === 'keep' ? 'Warning' : 'Rejected',
      reason: trouble.reason,
      message: `${trouble.message} (profile "${distributor}")`,
    })),
  });
  return {
    apply: [said.apply],
    status: [said.status],
    events: troubled.map(({ trouble }) => ({
      regarding: namespaceRef(name),
      type: 'Warning',
      reason: trouble.reason,
      action: 'Distribute',
      note: trouble.message,
    })),
  };
}
