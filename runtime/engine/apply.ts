/** Writes one change to its cluster. Rejections are returned as problems; the other changes of the result are still written. */

import { isDeepStrictEqual } from 'node:util';
import { PullwrightError, withHint } from '../core/errors.ts';
import { conditionsIn, nextConditions } from '../core/kubernetes/conditions.ts';
import { describeObject, type KubeObject } from '../core/kubernetes/object.ts';
import { recordOf, remember } from '../core/record.ts';
import {
  type ApiError,
  asPullwrightError,
  describeCause,
  immutableText,
  isApiError,
  isReplaceable,
  unlessRefused,
} from '../kube/api-error.ts';
import { digestObject } from '../kube/decode.ts';
import { drift, plainPatch, withUid } from '../kube/drift.ts';
import { objectRef } from '../kube/resources.ts';
import {
  type Author,
  authorText,
  type ChangeSet,
  fieldManager,
  foreignObject,
  isOurs,
  problemOf,
  type Removal,
  refText,
} from './changes.ts';
import { type Cluster, REMEMBERED, withoutFight } from './cluster.ts';
import { type Action, OWNER_LABEL, type ReconcileError, type Ref, type StatusPatch } from './contract.ts';

// Immutable fields (type of a Secret, data of an immutable one, a selector, role of a binding) are changed by delete and
// recreate. Only objects with our label or our fields are recreated, and never a CustomResourceDefinition, a Namespace or a
// PersistentVolumeClaim, because their content would be deleted with them.

/**
 * Recreates the object of a change that the API server rejected because a field is immutable.
 *
 * @throws PullwrightError `FieldImmutable` when a person must recreate it, `Terminating` while a finalizer blocks deletion
 */
async function replaceObject(change: Changing, refusal: ApiError, writer: Writer): Promise<Committed> {
  const { ref, before, desired } = change;
  const { client, cache } = writer.cluster;
  const isOursAlone = desired.metadata.labels?.[OWNER_LABEL] === writer.reconciler && isOurs(before, writer);
  if (!isOursAlone || !isReplaceable(before)) throw cannotChange(change, refusal);
  const { uid } = before.metadata;
  try {
    await client.remove(ref, { uid });
  } catch (error) {
    throw isForbidden(error) ? cannotChange(change, refusal) : error;
  }
  const left = await client.get(ref);
  if (left !== undefined && left.metadata.uid === uid) throw goingAway(ref, left);
  cache.forget(before);
  cache.observe(await client.apply(desired, { manager: fieldManager(writer.reconciler) }));
  return { verb: 'replaced', ref };
}

/** Whether RBAC or admission forbids the write, as opposed to a namespace that is being deleted. */
function isForbidden(error: unknown): boolean {
  return isApiError(error, 403) && !error.causes.some(({ reason }) => reason === 'NamespaceTerminating');
}

/** The object must be recreated by a person: it is not ours, or RBAC forbids to delete it. */
function cannotChange({ before, desired }: Changing, refusal: ApiError): PullwrightError {
  const fields = refusal.causes.filter(({ immutable }) => immutable).map(({ field }) => field);
  const { message, hint } = immutableText(before, desired, fields);
  return new PullwrightError(message, { code: 'FieldImmutable', retryPolicy: 'terminal', hint });
}

/** The object is being deleted, with a finalizer pending. It is recreated once it is deleted. */
function goingAway(ref: Ref, { metadata }: KubeObject): PullwrightError {
  const finalizers = (metadata.finalizers ?? []).join(', ');
  return new PullwrightError(
    `Cannot recreate "${describeObject(ref)}" yet: it is being deleted${finalizers === '' ? '' : `, and waits for ${finalizers}`}`,
    { code: 'Terminating', retryPolicy: 'waiting', afterMs: 1000 },
  );
}

/** Result of a change. `replaced`: deleted and recreated, because a field is immutable. */
export type Committed =
  | {
      readonly verb: 'created' | 'configured' | 'replaced' | 'unchanged' | 'removed';
      readonly ref: Ref;
    }
  | { readonly verb: 'failed'; readonly ref: Ref; readonly problem: ReconcileError };

type Applying = Extract<ChangeSet, { verb: 'created' | 'configured' | 'unchanged' }>;
/** A change of an object that exists. */
type Changing = Applying & { readonly before: KubeObject };

/** The author of a write, and its cluster. */
interface Writer extends Author {
  readonly cluster: Cluster;
}

/** Writes `change`. Never rejects. */
export async function commit(change: ChangeSet, author: Author, cluster: Cluster): Promise<Committed> {
  if (change.verb === 'refused') return { verb: 'failed', ref: change.ref, problem: change.problem };
  if (change.verb === 'unchanged') return { verb: 'unchanged', ref: change.ref };
  try {
    cluster.assertMayWrite();
    return await send(change, { ...author, cluster });
  } catch (error) {
    return { verb: 'failed', ref: change.ref, problem: problemOf(error, change.ref) };
  }
}

type Sent = Exclude<ChangeSet, { verb: 'refused' | 'unchanged' }>;

async function send(change: Sent, writer: Writer): Promise<Committed> {
  if (change.verb === 'removed') return removeObject(change, writer);
  if (change.verb === 'created') return createObject(change, writer);
  const { ref, before, desired } = change;
  const correction = { ref, before, digest: () => digestObject(desired) };
  return withoutFight(correction, writer.cluster, () => configureObject(change, writer));
}

/** Hint for patches of lists of other owners: they have no mode that only observes. */
const PATCH_FIGHT = 'Use one writer only: stop the other, or remove the object here';

/** Sends a JSON patch to a list that has other writers too. Never rejects. */
export async function commitAction(
  { ref, operations }: Action,
  author: Author,
  cluster: Cluster,
): Promise<Committed> {
  // Test operations differ for each resourceVersion; two programs that fight over a list repeat the same other operations.
  const digest = (): string => digestObject(operations.filter(({ op }) => op !== 'test'));
  const before = cluster.cache.store.get(ref);
  const { uid } = ref;
  const isSame = uid === undefined ? [] : [{ op: 'test', path: '/metadata/uid', value: uid }];
  try {
    cluster.assertMayWrite();
    const written = await withoutFight({ ref, before, digest, hint: PATCH_FIGHT }, cluster, () =>
      cluster.client.jsonPatch(ref, [...isSame, ...operations.map(sent)], fieldManager(author.reconciler)),
    );
    cluster.cache.observe(written);
    return { verb: 'configured', ref };
  } catch (error) {
    return { verb: 'failed', ref, problem: problemOf(error, ref) };
  }
}

/** Sets the resourceVersion, so that a mismatch returns 409; a failed `test` returns 422, like an invalid patch. */
function sent(operation: Action['operations'][number]): object {
  return operation.op === 'test' && operation.path === '/metadata/resourceVersion'
    ? { ...operation, op: 'replace' }
    : operation;
}

async function removeObject({ ref, before }: Removal, { cluster }: Writer): Promise<Committed> {
  // Already being deleted; a foreign finalizer may be pending.
  if (before.metadata.deletionTimestamp !== undefined) return { verb: 'unchanged', ref };
  // With another uid, another object has the same name, and it is not ours to delete.
  await unlessRefused(cluster.client.remove(ref, { uid: ref.uid }), 409);
  if ((before.metadata.finalizers ?? []).length === 0) cluster.cache.forget(before);
  return { verb: 'removed', ref };
}

/**
 * Server-side apply would merge into an existing object that is not in the cache yet, so read first, and never force ownership of
 * a field. A plain create needs no read: the API server rejects it when the object exists.
 */
async function createObject(change: Applying, writer: Writer): Promise<Committed> {
  const { desired, ref, plain = false } = change;
  const { cluster } = writer;
  const manager = fieldManager(writer.reconciler);
  if (!plain) {
    const present = await cluster.client.get(ref);
    if (present !== undefined) return meetObject(change, present, writer);
  }
  try {
    cluster.assertMayWrite();
    const { client } = cluster;
    const written = await (plain ? client.create(desired, manager) : client.apply(desired, { manager }));
    cluster.cache.observe(written, settledFor(change, written, writer));
    return { verb: 'created', ref };
  } catch (error) {
    // RBAC can restrict an apply by resource name, but not a create: with such a Role, copies are created by apply.
    if (plain && isForbidden(error)) return createObject({ ...change, plain: false }, writer);
    if (!isApiError(error, 409)) throw error;
    if (!plain) throw seenLate(ref, cluster);
    const present = await cluster.client.get(ref);
    if (present === undefined) throw error;
    return meetObject(change, present, writer);
  }
}

/** The author of a plain write whose response is as desired: its key needs no further reconcile. */
function settledFor(change: Applying, written: KubeObject, author: Author): string | undefined {
  if (change.plain !== true) return undefined;
  const isSettled = drift(change.desired, written, fieldManager(author.reconciler), 'written').length === 0;
  return isSettled ? authorText(author) : undefined;
}

/** Handles an existing object that was not in the cache: our own, created a moment ago, or a foreign one. */
async function meetObject(change: Applying, present: KubeObject, writer: Writer): Promise<Committed> {
  writer.cluster.cache.observe(present);
  // When only Secrets of one type are cached, our label on another type proves nothing: any client can set it.
  const isOther = change.desired.kind === 'Secret' && change.desired['type'] !== present['type'];
  if (isOther || !isOurs(present, writer)) throw seenLate(change.ref, writer.cluster);
  return configureObject({ ...change, before: present }, writer);
}

async function configureObject(change: Applying, writer: Writer): Promise<Committed> {
  const { desired, before, ref } = change;
  const { cluster } = writer;
  const isPart = desired.metadata.labels?.[OWNER_LABEL] !== writer.reconciler;
  const manager = fieldManager(writer.reconciler);
  try {
    const written =
      change.plain === true && before !== undefined
        ? await patchPlainly(cluster, ref, plainPatch(desired, before, manager), manager)
        : // Force ownership in objects that we created; in others only when the user configured it.
          await cluster.client.apply(withUid(desired, before), {
            manager,
            force: !isPart || change.take === true,
          });
    cluster.cache.observe(written, settledFor(change, written, writer));
    return { verb: 'configured', ref };
  } catch (error) {
    if (before !== undefined && isApiError(error, 422) && error.causes.some(({ immutable }) => immutable)) {
      return replaceObject({ ...change, before }, error, writer);
    }
    throw isPart && isApiError(error, 409) ? conflict(error, ref) : error;
  }
}

async function patchPlainly(
  { client }: Cluster,
  ref: Ref,
  patch: object,
  manager: string,
): Promise<KubeObject> {
  try {
    return await client.mergePatch(ref, patch, manager);
  } catch (error) {
    if (!isApiError(error, 404)) throw error;
    // The watch reports the deletion in a moment.
    throw new PullwrightError(`Cannot change "${describeObject(ref)}": it was deleted in the meantime`, {
      code: 'Gone',
      retryPolicy: 'waiting',
      afterMs: 50,
    });
  }
}

/** The object is in the cache by now, so requeue; if no watch covers it, it is foreign. */
function seenLate(ref: Ref, cluster: Cluster): PullwrightError {
  if (cluster.cache.store.get(ref) === undefined) return foreignObject(ref);
  return new PullwrightError(
    `Cannot create "${describeObject(ref)}": another client created it in the meantime`,
    { code: 'MadeMeanwhile', retryPolicy: 'waiting', afterMs: 50 },
  );
}

function conflict(error: ApiError, ref: Ref): PullwrightError {
  const fields = error.causes.filter(({ manager }) => manager !== undefined).map(describeCause);
  // A conflict without fields is about the uid: the object was recreated, which the watch reports.
  if (fields.length === 0) return asPullwrightError(error);
  return new PullwrightError(`Cannot set fields of "${describeObject(ref)}": ${fields.join(', ')}`, {
    code: 'FieldConflict',
    retryPolicy: 'terminal',
    hint: 'Make that manager release the field, or set the desired value there',
  });
}

/** Writes the status of an object by server-side apply. Returns false when it is current or the object does not exist. */
export async function commitStatus(
  { ref, status }: StatusPatch,
  author: Author,
  cluster: Cluster,
): Promise<boolean> {
  const live = cluster.cache.store.get(ref) ?? (await cluster.client.get(ref));
  if (live === undefined || sameStatus(status, live.status)) return false;
  cluster.assertMayWrite();
  const { apiVersion, kind, ...metadata } = objectRef(live);
  const written = await cluster.client.apply(withUid({ apiVersion, kind, metadata, status }, live), {
    manager: fieldManager(author.reconciler),
    subresource: 'status',
    force: true,
  });
  cluster.cache.observe(written);
  return true;
}

/** Fields that are undefined count as absent. */
function sameStatus(desired: Readonly<Record<string, unknown>>, live: unknown): boolean {
  const wanted = JSON.parse(JSON.stringify(desired)) as Readonly<Record<string, unknown>>;
  const present = recordOf(live);
  return Object.keys(desired).every((key) => isDeepStrictEqual(wanted[key], present[key]));
}

// Writes that the API server rejects until a person acts, and the status then: a reconciler declares its status together with its
// objects, and `Ready=True` would be wrong when one of them is rejected.

/**
 * Writes that failed because a foreign object has the name (which may be in no cache), or because RBAC, a policy or a quota
 * rejects them. Each entry is deleted when a later write succeeds.
 */
export class RefusedWrites {
  readonly #refused = new Map<string, ReconcileError>();

  get(ref: Ref): ReconcileError | undefined {
    return this.#refused.get(refText(ref));
  }

  /** Records the results of writes. Returns whether a refusal was added or removed. */
  learn(committed: readonly Committed[]): boolean {
    let isNew = false;
    for (const done of committed) {
      const text = refText(done.ref);
      if (done.verb !== 'failed') isNew = this.#refused.delete(text) || isNew;
      // Compare codes: a message with a number, such as that of a quota, would be new each time.
      else if (isLasting(done.problem) && this.#refused.get(text)?.code !== done.problem.code) {
        remember(this.#refused, text, done.problem, REMEMBERED);
        isNew = true;
      }
    }
    return isNew;
  }
}

/** Rejections that last until a person acts, although they are retried. */
const LASTING: readonly string[] = [
  'Forbidden',
  'QuotaExceeded',
  'AdmissionDenied',
  'NamespaceTerminating',
  'ManagedElsewhere',
];

/** Whether a person must act. Other failures are retried and do not affect the status. */
export function isLasting({ retryPolicy, code }: ReconcileError): boolean {
  return retryPolicy === 'terminal' || LASTING.includes(code);
}

/**
 * `status` with `Ready=False` and `Stalled=True` by `failure` in place of `Ready=True` and of `Reconciling=True`: waiting does
 * not help. A status that is stalled, or has no condition `Ready`, is returned unchanged: it has its own reason.
 *
 * @param present the current object, for the transition times
 */
export function failedStatus(
  status: Readonly<Record<string, unknown>>,
  failure: ReconcileError,
  present: Pick<KubeObject, 'status'> | undefined,
  now: Date,
): Readonly<Record<string, unknown>> {
  const wanted = conditionsIn({ status });
  const ready = wanted.find(({ type }) => type === 'Ready');
  const goesOn = wanted.some(({ type, status }) => type === 'Reconciling' && status === 'True');
  if (ready === undefined || (ready.status !== 'True' && !goesOn)) return status;
  const text = { reason: failure.code, message: withHint(failure) };
  const failed = [
    { ...ready, ...text, status: 'False' as const },
    { ...ready, ...text, type: 'Stalled', status: 'True' as const },
    ...wanted.filter(({ type }) => !['Ready', 'Stalled', 'Reconciling'].includes(type)),
  ];
  return { ...status, conditions: nextConditions(conditionsIn(present), failed, now) };
}
