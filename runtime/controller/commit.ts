/** Sends one change to its cluster. Refusals come back as problems; the rest of an outcome goes on. */

import { isApiError } from '../kube/api-error.ts';
import { digestObject } from '../kube/decode.ts';
import { asPullwrightError } from '../kube/failure.ts';
import { plainDrift, plainPatch } from '../kube/plain-patch.ts';
import { objectRef } from '../kube/resources.ts';
import { PullwrightError } from '../rules/errors.ts';
import { describeObject, type KubeObject } from '../rules/kubernetes/object.ts';
import { isRecord } from '../rules/record.ts';
import { type Author, authorText, type Delta, fieldManager, isOurs } from './changes.ts';
import type { Cluster } from './cluster.ts';
import { withoutFight } from './conflict-breaker.ts';
import { OWNER_LABEL, type Problem, type Ref } from './contract.ts';
import { isForbidden, isImmutable, replaceObject } from './replace.ts';

/** What became of a change. `replaced`: deleted and made again, because a field cannot be changed in place. */
export type Committed =
  | {
      readonly verb: 'created' | 'configured' | 'replaced' | 'unchanged' | 'removed';
      readonly ref: Ref;
    }
  | { readonly verb: 'failed'; readonly ref: Ref; readonly problem: Problem };

type Applying = Extract<Delta, { verb: 'created' | 'configured' | 'unchanged' }>;

/** Carries out `change`. Never rejects. */
export async function commit(change: Delta, author: Author, cluster: Cluster): Promise<Committed> {
  if (change.verb === 'refused') return { verb: 'failed', ref: change.ref, problem: change.problem };
  if (change.verb === 'unchanged') return { verb: 'unchanged', ref: change.ref };
  try {
    cluster.assertMayWrite();
    return await send(change, author, cluster);
  } catch (error) {
    return { verb: 'failed', ref: change.ref, problem: problemOf(error, change.ref) };
  }
}

type Sent = Exclude<Delta, { verb: 'refused' | 'unchanged' }>;

async function send(change: Sent, author: Author, cluster: Cluster): Promise<Committed> {
  if (change.verb === 'removed') return removeObject(change, cluster);
  if (change.verb === 'created') return createObject(change, author, cluster);
  const { ref, before, desired } = change;
  const correction = { ref, before, digest: () => digestObject(desired) };
  return withoutFight(correction, cluster, () => configureObject(change, author, cluster));
}

/** An error as a problem of `ref`. */
export function problemOf(error: unknown, ref?: Ref): Problem {
  const failure = asPullwrightError(error);
  return {
    disposition: failure.disposition,
    code: failure.code,
    message: failure.message,
    ...(failure.hint === undefined ? {} : { hint: failure.hint }),
    ...(failure.afterMs === undefined ? {} : { afterMs: failure.afterMs }),
    ...(ref === undefined ? {} : { regarding: ref }),
  };
}

async function removeObject(
  { ref, before }: Extract<Delta, { verb: 'removed' }>,
  cluster: Cluster,
): Promise<Committed> {
  // Already on its way; a finalizer of somebody else is in no hurry.
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
 * Server-side apply would merge into an object that is there and that the cache does not show yet; so look first, and never take
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

/** A plain write whose answer is what was wanted: another pass of its author would find nothing. */
function settledFor(change: Applying, written: KubeObject, author: Author): string | undefined {
  if (change.plain !== true) return undefined;
  const isSettled = plainDrift(change.desired, written, fieldManager(author.reconciler)).length === 0;
  return isSettled ? authorText(author) : undefined;
}

/** An object is there that the cache did not show: ours, from a moment ago, or somebody's. */
async function meetObject(
  change: Applying,
  present: KubeObject,
  author: Author,
  cluster: Cluster,
): Promise<Committed> {
  cluster.cache.observe(present);
  // Where only Secrets of one type are read, anybody may have put our mark on one of another: it is no less theirs.
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
        : // What we made is ours whoever edits it; of what others made, only what nobody else claims, or what a person gave us.
          await cluster.client.apply(withUid(desired, before), {
            manager,
            force: !isPart || change.take === true,
          });
    cluster.cache.observe(written, settledFor(change, written, author));
    return { verb: 'configured', ref };
  } catch (error) {
    if (before !== undefined && isImmutable(error)) {
      const mayDelete = !isPart && isOurs(before, author);
      return replaceObject({ ref, before, desired, refusal: error, mayDelete }, author, cluster);
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
      disposition: 'waiting',
      afterMs: 50,
    });
  }
}

/** With the uid that was seen, so that the apply cannot hit (or make) another object of the name. */
function withUid(desired: KubeObject, before: KubeObject | undefined): KubeObject {
  const uid = before?.metadata.uid;
  return uid === undefined ? desired : { ...desired, metadata: { ...desired.metadata, uid } };
}

/** The cache knows it by now, and the next pass judges it; unless no read covers it. */
function seenLate(ref: Ref, cluster: Cluster): PullwrightError {
  if (cluster.cache.store.get(ref) === undefined) return foreign(ref);
  return new PullwrightError(`Cannot create "${describeObject(ref)}": somebody made it meanwhile`, {
    code: 'MadeMeanwhile',
    disposition: 'waiting',
    afterMs: 50,
  });
}

function foreign(ref: Ref): PullwrightError {
  return new PullwrightError(
    `Cannot apply "${describeObject(ref)}": it exists and was not made by Pullwright`,
    {
      code: 'ForeignObject',
      disposition: 'terminal',
      hint: 'Delete or rename it, or move what it holds elsewhere',
    },
  );
}

function conflict(error: unknown, ref: Ref): PullwrightError {
  const fields = isApiError(error)
    ? error.causes
        .filter((cause) => cause.manager !== undefined)
        .map((cause) => `${cause.field} belongs to "${cause.manager}"`)
    : [];
  // Without fields it is the uid: the object is another one by now, and the watch will tell.
  if (fields.length === 0) return asPullwrightError(error);
  return new PullwrightError(`Cannot set fields of "${describeObject(ref)}": ${fields.join(', ')}`, {
    code: 'FieldConflict',
    disposition: 'terminal',
    hint: 'Let that manager give the field up, or set the wanted value there',
  });
}

/** The status of an object, by server-side apply; false when there is nothing to say or nobody to say it of. */
export async function commitStatus(
  { ref, status }: { readonly ref: Ref; readonly status: Readonly<Record<string, unknown>> },
  author: Author,
  cluster: Cluster,
): Promise<boolean> {
  const live = cluster.cache.store.get(ref) ?? (await cluster.client.get(ref));
  if (live === undefined || sameStatus(status, live.status)) return false;
  cluster.assertMayWrite();
  const { apiVersion, kind, name, namespace } = objectRef(live);
  const metadata = {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(live.metadata.uid === undefined ? {} : { uid: live.metadata.uid }),
  };
  const said = { apiVersion, kind, metadata, status };
  const written = await cluster.client.apply(said, {
    manager: fieldManager(author.reconciler),
    subresource: 'status',
    force: true,
  });
  cluster.cache.observe(written);
  return true;
}

function sameStatus(wanted: Readonly<Record<string, unknown>>, live: unknown): boolean {
  const present = (live ?? {}) as Readonly<Record<string, unknown>>;
  return Object.entries(wanted).every(([key, value]) => canonical(value) === canonical(present[key]));
}

/** Text that does not depend on the order of keys, in which what is undefined is absent. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    isRecord(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );
}
