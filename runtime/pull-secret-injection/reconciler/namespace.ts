/** One namespace: its copies, and a PullStatus where its owner has something to do. */

import { readiness } from '../../core/kubernetes/conditions.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import type { Apply, EventNote, Reader, ReconcileError, Result } from '../../engine/contract.ts';
import { reportPullStatus } from '../../engine/pull-status.ts';
import { whoseTrouble } from '../causes.ts';
import { namespaceRef, secretRef } from '../names.ts';
import { type InjectionOptions, RECONCILER_NAME } from '../options.ts';
import { type Copy, type CopyContext, copiesFor, keptUnread, revokedIn } from './copies.ts';
import { expiryOf } from './missing-sources.ts';
import { heldIn } from './removals.ts';
import { distributionIn, isTerminating, namespaceLabels, serves } from './view.ts';

/** Copies that are held are looked at again after this long: less of them may be going by then. */
const HELD_AGAIN_MS = 30_000;
/** A Secret of another type is not watched, nor that it went. */
const TAKEN_AGAIN_MS = 60_000;

/** When there is something to do although nothing changes. */
function againOf(
  { world: reader, distribution, namespace, options }: CopyContext,
  { isHeld, troubled }: { readonly isHeld: boolean; readonly troubled: readonly Copy[] },
): { readonly requeueAfterMs?: number } {
  const labels = namespaceLabels(namespace);
  const waits = distribution.distributors
    .filter((one) => one.copies.removeAfterMs !== undefined && serves(one, labels, options))
    .flatMap((one) => expiryOf(reader, one, options).nextMs ?? []);
  if (isHeld) waits.push(HELD_AGAIN_MS);
  if (troubled.some(({ action }) => action === 'write')) waits.push(TAKEN_AGAIN_MS);
  return waits.length === 0 ? {} : { requeueAfterMs: Math.min(...waits) };
}

/** What should be true of one namespace. */
export function reconcileNamespace(reader: Reader, name: string, options: InjectionOptions): Result {
  const namespace = reader.get(namespaceRef(name));
  if (namespace === undefined) return { retain: 'all' };
  // Nothing can be created in a namespace that goes away, and what is in it goes with it: some day, and what was taken back at once.
  if (isTerminating(namespace))
    return { retain: 'all', remove: revokedIn({ world: reader, namespace, options }) };
  const context = { world: reader, distribution: distributionIn(reader), namespace, options };
  const copies = copiesFor(context);
  // What the owner of the namespace can do nothing about is said once, by the profile.
  const troubled = copies.filter(
    ({ trouble }) => trouble !== undefined && whoseTrouble(trouble.reason) === 'tenant',
  );
  const reported = troubled.length === 0 ? undefined : reportOf(reader, namespace, troubled);
  const kept = copies.filter((copy) => copy.action === 'keep' || copy.action === 'foreign');
  const held = heldIn(context, copies).map(({ metadata }) => secretRef(name, metadata.name));
  return {
    apply: [...copies.flatMap(applyOf), ...(reported === undefined ? [] : [reported.apply])],
    retain: [...kept.map((copy) => copy.ref), ...keptUnread(context), ...held],
    ...(reported === undefined ? {} : { status: [reported.status], events: reported.events }),
    errors: troubled.map(problemOf),
    ...againOf(context, { isHeld: held.length > 0, troubled }),
  };
}

function applyOf(copy: Copy): readonly Apply[] {
  if (copy.action !== 'write' || copy.object === undefined) return [];
  return [
    {
      role: 'hosted',
      object: copy.object,
      plain: true,
      ...(copy.adopt === true ? { forceOwnership: true } : {}),
    },
  ];
}

/** A person must act; the queue has nothing to try again. */
function problemOf({ trouble, ref }: Copy): ReconcileError {
  return {
    retryPolicy: 'terminal',
    code: trouble?.reason ?? '',
    message: trouble?.message ?? '',
    regarding: ref,
  };
}

function reportOf(
  reader: Reader,
  namespace: KubeObject,
  troubled: readonly Copy[],
): { apply: Apply; status: NonNullable<Result['status']>[number]; events: readonly EventNote[] } {
  const { name } = namespace.metadata;
  const [first] = troubled;
  const message = first?.trouble?.message ?? '';
  const said = reportPullStatus(reader, 'hosted', {
    reporter: RECONCILER_NAME,
    about: { apiVersion: 'v1', kind: 'Namespace', namespace: name, name },
    conditions: readiness('stalled', { reason: first?.trouble?.reason ?? 'Unknown', message }),
    verdicts: troubled.map(verdictOf),
  });
  return {
    ...said,
    events: troubled.map((copy) => ({
      regarding: namespaceRef(name),
      type: 'Warning',
      reason: copy.trouble?.reason ?? '',
      action: 'Distribute',
      note: copy.trouble?.message ?? '',
    })),
  };
}

function verdictOf({ name, action, distributor, trouble }: Copy): EntryStatus {
  const verdict = action === 'keep' ? 'Warning' : 'Rejected';
  return {
    subject: name,
    verdict,
    reason: trouble?.reason ?? '',
    message: `${trouble?.message ?? ''} (profile "${distributor}")`,
  };
}
