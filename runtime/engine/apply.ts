/** Sends one change to its cluster. Refusals are returned as problems; the other changes of the outcome are still sent. */

import { isDeepStrictEqual } from 'node:util';
import { PullwrightError } from '../core/errors.ts';
import { conditionsIn, nextConditions } from '../core/kubernetes/conditions.ts';
import { describeObject, type KubeObject } from '../core/kubernetes/object.ts';
import { recordOf, remember } from '../core/record.ts';
import {
  type ApiError,
  asPullwrightError,
  immutableText,
  isApiError,
  isReplaceable,
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
} from './changes.ts';
import { type Cluster, REMEMBERED, withoutFight } from './cluster.ts';
import { type Action, OWNER_LABEL, type ReconcileError, type Ref } from './contract.ts';

// Immutable fields are changed by delete and create: the type of a Secret, an immutable one, a selector, the role of a binding.
// Only what carries our mark or our fields is deleted to be made again, and never a CustomResourceDefinition, a Namespace or a
// PersistentVolumeClaim: what they hold would go with them.

/**
 * Makes again the object of a change that the API server refused because a field cannot be changed.
 *
 * @throws PullwrightError `FieldImmutable` when that is left to a person, `Terminating` while a finalizer holds it
 */
async function replaceObject(
  change: Applying & { readonly before: KubeObject },
  refusal: ApiError,
  author: Author,
  { client, cache }: Cluster,
): Promise<Committed> {
  const { ref, before, desired } = change;
  const isOursAlone = desired.metadata.labels?.[OWNER_LABEL] === author.reconciler && isOurs(before, author);
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
  cache.observe(await client.apply(desired, { manager: fieldManager(author.reconciler) }));
  return { verb: 'replaced', ref };
}

/** A refusal that no other value and no retry fixes. */
function isImmutable(error: unknown): error is ApiError {
  return isApiError(error, 422) && error.causes.some(({ immutable }) => immutable);
}

/** Forbidden by RBAC, and not because the namespace is being deleted. */
function isForbidden(error: unknown): boolean {
  return isApiError(error, 403) && !error.causes.some(({ reason }) => reason === 'NamespaceTerminating');
}

/** A person must act: it is not ours to delete, or we may not. */
function cannotChange(
  { before, desired }: Applying & { readonly before: KubeObject },
  refusal: ApiError,
): PullwrightError {
  const fields = refusal.causes.filter(({ immutable }) => immutable).map(({ field }) => field);
  const { message, hint } = immutableText(before, desired, fields);
  return new PullwrightError(message, { code: 'FieldImmutable', retryPolicy: 'terminal', hint });
}

/** Being deleted, with a finalizer pending: created again when it is gone. */
function goingAway(ref: Ref, { metadata }: KubeObject): PullwrightError {
  const finalizers = (metadata.finalizers ?? []).join(', ');
  return new PullwrightError(
    `Cannot make "${describeObject(ref)}" again yet: it is being deleted${finalizers === '' ? '' : `, and waits for ${finalizers}`}`,
    { code: 'Terminating', retryPolicy: 'waiting', afterMs: 1000 },
  );
}

/** What became of a change. `replaced`: deleted and created again, because a field is immutable. */
export type Committed =
  | {
      readonly verb: 'created' | 'configured' | 'replaced' | 'unchanged' | 'removed';
      readonly ref: Ref;
    }
  | { readonly verb: 'failed'; readonly ref: Ref; readonly problem: ReconcileError };

type Applying = Extract<ChangeSet, { verb: 'created' | 'configured' | 'unchanged' }>;

/** Carries out `change`. Never rejects. */
export async function commit(change: ChangeSet, author: Author, cluster: Cluster): Promise<Committed> {
  if (change.verb === 'refused') return { verb: 'failed', ref: change.ref, problem: change.problem };
  if (change.verb === 'unchanged') return { verb: 'unchanged', ref: change.ref };
  try {
    cluster.assertMayWrite();
    return await send(change, author, cluster);
  } catch (error) {
    return { verb: 'failed', ref: change.ref, problem: problemOf(error, change.ref) };
  }
}

type Sent = Exclude<ChangeSet, { verb: 'refused' | 'unchanged' }>;

async function send(change: Sent, author: Author, cluster: Cluster): Promise<Committed> {
  if (change.verb === 'removed') return removeObject(change, cluster);
  if (change.verb === 'created') return createObject(change, author, cluster);
  const { ref, before, desired } = change;
  const correction = { ref, before, digest: () => digestObject(desired) };
  return withoutFight(correction, cluster, () => configureObject(change, author, cluster));
}

/** The object has another owner, and no option makes us only observe it. */
const PATCH_FIGHT = 'Let one of both write it: stop the other, or no longer ask for this here';

/** Sends a JSON patch of a list that others write too. Never rejects. */
export async function commitAction(
  { ref, operations }: Action,
  author: Author,
  cluster: Cluster,
): Promise<Committed> {
  // What is tested first changes with each version; two programs that fight over a list write the same operations again and again.
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

/** A version that is written is compared too, and answered by 409; a test that fails by 422, as if the patch were wrong. */
function sent(operation: Action['operations'][number]): object {
  return operation.op === 'test' && operation.path === '/metadata/resourceVersion'
    ? { ...operation, op: 'replace' }
    : operation;
}

async function removeObject(
  { ref, before }: Extract<ChangeSet, { verb: 'removed' }>,
  cluster: Cluster,
): Promise<Committed> {
  // Already being deleted; a foreign finalizer may take its time.
  if (before.metadata.deletionTimestamp !== undefined) return { verb: 'unchanged', ref };
  try {
    await cluster.client.remove(ref, { uid: ref.uid });
  } catch (error) {
    // Another object of the same name: not the one we were to remove.
    if (!isApiError(error, 409)) throw error;
  }
  if ((before.metadata.finalizers ?? []).length === 0) cluster.cache.forget(before);
  return { verb: 'removed', ref };
}

/**
 * Server-side apply would merge into an object that exists and that the cache does not show yet; so read first, and never take
 * a field from another manager. A plain create is refused by the API server itself.
 */
async function createObject(change: Applying, author: Author, cluster: Cluster): Promise<Committed> {
  const { desired, ref, plain = false } = change;
  const manager = fieldManager(author.reconciler);
  if (!plain) {
    const present = await cluster.client.get(ref);
    if (present !== undefined) return meetObject(change, present, author, cluster);
  }
  try {
    cluster.assertMayWrite();
    const { client } = cluster;
    const written = await (plain ? client.create(desired, manager) : client.apply(desired, { manager }));
    cluster.cache.observe(written, settledFor(change, written, author));
    return { verb: 'created', ref };
  } catch (error) {
    // RBAC cannot grant a create by name, but an apply: where the names are narrowed, copies begin with one.
    if (plain && isForbidden(error)) return createObject({ ...change, plain: false }, author, cluster);
    if (!isApiError(error, 409)) throw error;
    if (!plain) throw seenLate(ref, cluster);
    const present = await cluster.client.get(ref);
    if (present === undefined) throw error;
    return meetObject(change, present, author, cluster);
  }
}

/** A plain write whose response is as desired: another pass of its author would find nothing. */
function settledFor(change: Applying, written: KubeObject, author: Author): string | undefined {
  if (change.plain !== true) return undefined;
  const isSettled = drift(change.desired, written, fieldManager(author.reconciler), 'written').length === 0;
  return isSettled ? authorText(author) : undefined;
}

/** An object exists that the cache did not show: our own, created a moment ago, or a foreign one. */
async function meetObject(
  change: Applying,
  present: KubeObject,
  author: Author,
  cluster: Cluster,
): Promise<Committed> {
  cluster.cache.observe(present);
  // Where only Secrets of one type are read, our label on one of another type proves nothing: any writer can set it.
  const isOther = change.desired.kind === 'Secret' && change.desired['type'] !== present['type'];
  if (isOther || !isOurs(present, author)) throw seenLate(change.ref, cluster);
  return configureObject({ ...change, before: present }, author, cluster);
}

async function configureObject(change: Applying, author: Author, cluster: Cluster): Promise<Committed> {
  const { desired, before, ref } = change;
  const isPart = desired.metadata.labels?.[OWNER_LABEL] !== author.reconciler;
  const manager = fieldManager(author.reconciler);
  try {
    const written =
      change.plain === true && before !== undefined
        ? await patchPlainly(cluster, ref, plainPatch(desired, before, manager), manager)
        : // Objects that we created are ours after any edit; in others, only unclaimed fields, or those a person assigned to us.
          await cluster.client.apply(withUid(desired, before), {
            manager,
            force: !isPart || change.take === true,
          });
    cluster.cache.observe(written, settledFor(change, written, author));
    return { verb: 'configured', ref };
  } catch (error) {
    if (before !== undefined && isImmutable(error)) {
      return replaceObject({ ...change, before }, error, author, cluster);
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
    // The watch will say so in a moment.
    throw new PullwrightError(`Cannot change "${describeObject(ref)}": it was deleted meanwhile`, {
      code: 'Gone',
      retryPolicy: 'waiting',
      afterMs: 50,
    });
  }
}

/** The cache knows it by now, and the next pass handles it; unless no read covers it. */
function seenLate(ref: Ref, cluster: Cluster): PullwrightError {
  if (cluster.cache.store.get(ref) === undefined) return foreignObject(ref);
  return new PullwrightError(`Cannot create "${describeObject(ref)}": another client created it meanwhile`, {
    code: 'MadeMeanwhile',
    retryPolicy: 'waiting',
    afterMs: 50,
  });
}

function conflict(error: unknown, ref: Ref): PullwrightError {
  const fields = isApiError(error)
    ? error.causes
        .filter((cause) => cause.manager !== undefined)
        .map((cause) => `${cause.field} belongs to "${cause.manager}"`)
    : [];
  // Without fields it is the uid: the object was recreated, and the watch will report it.
  if (fields.length === 0) return asPullwrightError(error);
  return new PullwrightError(`Cannot set fields of "${describeObject(ref)}": ${fields.join(', ')}`, {
    code: 'FieldConflict',
    retryPolicy: 'terminal',
    hint: 'Make that manager release the field, or set the desired value there',
  });
}

/** The status of an object, by server-side apply; false when there is no status or no object. */
export async function commitStatus(
  { ref, status }: { readonly ref: Ref; readonly status: Readonly<Record<string, unknown>> },
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

/** What is undefined is absent. */
function sameStatus(desired: Readonly<Record<string, unknown>>, live: unknown): boolean {
  const wanted = JSON.parse(JSON.stringify(desired)) as Readonly<Record<string, unknown>>;
  const present = recordOf(live);
  return Object.keys(desired).every((key) => isDeepStrictEqual(wanted[key], present[key]));
}

// Writes that the API server refused for a reason that does not pass by itself, and what the status of their object says then: a
// reconciler declares its status together with its objects, and `Ready=True` would be a lie when one of them is refused for good.

/**
 * A foreign object has the name (which no cache shows where no read covers it), or RBAC, a policy or a quota refuses.
 * Forgotten when a later write succeeds.
 */
export class RefusedWrites {
  readonly #refused = new Map<string, ReconcileError>();

  get(ref: Ref): ReconcileError | undefined {
    return this.#refused.get(textOf(ref));
  }

  /** Takes in what became of writes. Gives whether something is known now that was not. */
  learn(committed: readonly Committed[]): boolean {
    let isNew = false;
    for (const done of committed) {
      const text = textOf(done.ref);
      if (done.verb !== 'failed') isNew = this.#refused.delete(text) || isNew;
      // By the code: a message that counts (as that of a quota) would be news each time.
      else if (isLasting(done.problem) && this.#refused.get(text)?.code !== done.problem.code) {
        remember(this.#refused, text, done.problem, REMEMBERED);
        isNew = true;
      }
    }
    return isNew;
  }
}

function textOf({ role, apiVersion, kind, namespace, name }: Ref): string {
  return `${role} ${apiVersion} ${describeObject({ kind, namespace, name })}`;
}

/** Refusals that last until a person acts, though they are tried again meanwhile. */
const LASTING: readonly string[] = [
  'Forbidden',
  'QuotaExceeded',
  'AdmissionDenied',
  'NamespaceTerminating',
  'ManagedElsewhere',
];

/** Whether it does not pass by itself: what is retried says nothing about the declaration. */
export function isLasting({ retryPolicy, code }: ReconcileError): boolean {
  return retryPolicy === 'terminal' || LASTING.includes(code);
}

/**
 * `status` with `Ready=False` and `Stalled=True` by `problem` in place of `Ready=True`, and of `Reconciling=True`: what waits by itself
 * waits in vain. A status that is stalled, or has no condition `Ready`, comes back as it is: it has its own reason.
 *
 * @param present the object as it is now, for the times of transition
 */
export function failedStatus(
  status: Readonly<Record<string, unknown>>,
  { code, message, hint }: ReconcileError,
  present: Pick<KubeObject, 'status'> | undefined,
  now: Date,
): Readonly<Record<string, unknown>> {
  const wanted = conditionsIn({ status });
  const ready = wanted.find(({ type }) => type === 'Ready');
  const goesOn = wanted.some(({ type, status }) => type === 'Reconciling' && status === 'True');
  if (ready === undefined || (ready.status !== 'True' && !goesOn)) return status;
  const text = { reason: code, message: hint === undefined ? message : `${message}. ${hint}` };
  const failed = [
    { ...ready, ...text, status: 'False' as const },
    { ...ready, ...text, type: 'Stalled', status: 'True' as const },
    ...wanted.filter(({ type }) => !['Ready', 'Stalled', 'Reconciling'].includes(type)),
  ];
  return { ...status, conditions: nextConditions(conditionsIn(present), failed, now) };
}
