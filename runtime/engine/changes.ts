/**
 * Computes the writes for the result of a reconcile: adds our label and annotation, rejects writes to foreign objects, deletes
 * objects that are no longer desired. Shared by the live and the offline engine.
 */

import { PullwrightError } from '../core/errors.ts';
import { describeObject, type KubeObject } from '../core/kubernetes/object.ts';
import { distinctBy } from '../core/record.ts';
import { asPullwrightError } from '../kube/api-error.ts';
import { applyEntry, drift } from '../kube/drift.ts';
import { objectRef } from '../kube/resources.ts';
import {
  type ApplyObject,
  type FieldPatch,
  KEY_ANNOTATION,
  OWNER_LABEL,
  type ReconcileError,
  type Ref,
  type Request,
  type Result,
  type Role,
} from './contract.ts';
import { rolesOf, type Stores } from './store.ts';

/** One object and the change to it. */
export type ChangeSet =
  | {
      readonly verb: 'created' | 'configured' | 'unchanged';
      readonly ref: Ref;
      readonly desired: KubeObject;
      readonly before?: KubeObject;
      /** As in `ApplyObject`. */
      readonly plain?: boolean | undefined;
      /** As in `FieldPatch`. */
      readonly take?: boolean | undefined;
    }
  | Removal
  | { readonly verb: 'refused'; readonly ref: Ref; readonly problem: ReconcileError };

export interface Removal {
  readonly verb: 'removed';
  readonly ref: Ref & { readonly uid: string };
  readonly before: KubeObject;
}

/** The reconciler and the key that a write belongs to. */
export interface Author {
  readonly reconciler: string;
  readonly key: Request;
}

/** The field manager of a reconciler. */
export function fieldManager(reconciler: string): string {
  return `pullwright-${reconciler}`;
}

/** `<scope>|<namespace>|<name>`: value of the key annotation, and the key's identity in queues. */
export function keyText(key: Request): string {
  return `${key.scope}|${key.namespace ?? ''}|${key.name}`;
}

/** Author of a write, for notifications: one key of one reconciler. */
export function authorText({ reconciler, key }: Author): string {
  return `${reconciler} ${keyText(key)}`;
}

/** The writes that turn the cached objects into `result`. Order: applies as listed, then removals. */
export function changesOf(result: Result, author: Author, stores: Stores): readonly ChangeSet[] {
  const { apply = [], retain = [] } = result;
  const isAlone = stores.hosted === stores.management;
  const textOf = (ref: Ref): string => refText(isAlone ? { ...ref, role: 'hosted' } : ref);
  const applies = apply.map((one) =>
    'part' in one ? partChange(one, author, stores) : objectChange(one, author, stores),
  );
  const kept = retain === 'all' ? undefined : new Set(retain.map(textOf));
  const pruned =
    kept === undefined ? [] : prunable(author, stores).filter(({ ref }) => !kept.has(textOf(ref)));
  const applied = new Set(applies.map(({ ref }) => textOf(ref)));
  const removals = [...explicitRemovals(result, stores), ...pruned].filter(
    ({ ref }) => !applied.has(textOf(ref)),
  );
  return [...applies, ...distinctBy(removals, ({ ref }) => textOf(ref))];
}

function objectChange(apply: ApplyObject, author: Author, stores: Stores): ChangeSet {
  const { object, role, plain } = apply;
  const ref = refOf(role, object);
  const before = stores[role].get(ref);
  const desired = marked(object, author);
  if (before === undefined) return { verb: 'created', ref, desired, plain };
  const seen = seenRef(role, before);
  if (before.metadata.deletionTimestamp !== undefined)
    return refused(
      seen,
      new PullwrightError(`Cannot apply "${describeObject(seen)}": it is being deleted`, {
        code: 'Terminating',
        retryPolicy: 'waiting',
        afterMs: 1000,
        hint: 'It is recreated after its deletion',
      }),
    );
  if (apply.forceOwnership !== true && !isOurs(before, author)) return refused(seen, foreignObject(seen));
  const manager = fieldManager(author.reconciler);
  const ownership = plain === true ? 'written' : 'applied';
  const differs = drift(desired, before, manager, ownership).length > 0;
  return { verb: differs ? 'configured' : 'unchanged', ref: seen, desired, before, plain };
}

function refused(ref: Ref, error: PullwrightError): ChangeSet {
  return { verb: 'refused', ref, problem: problemOf(error, ref) };
}

/** Fails an apply because an object with the same name exists that is not ours. */
export function foreignObject(ref: Ref): PullwrightError {
  return new PullwrightError(
    `Cannot apply "${describeObject(ref)}": it exists and was not created by Pullwright`,
    {
      code: 'ForeignObject',
      retryPolicy: 'terminal',
      hint: 'Delete or rename it, or move its content elsewhere',
    },
  );
}

/** Converts an error to a problem of `ref`. */
export function problemOf(error: unknown, ref?: Ref): ReconcileError {
  const { retryPolicy, code, message, hint, afterMs } = asPullwrightError(error);
  return { retryPolicy, code, message, hint, afterMs, regarding: ref };
}

function partChange(apply: FieldPatch, author: Author, stores: Stores): ChangeSet {
  const ref = apply.part;
  const before = stores[ref.role].get(ref);
  if (before === undefined || before.metadata.uid !== ref.uid) {
    return refused(
      ref,
      new PullwrightError(`Cannot set fields of "${describeObject(ref)}": the object was deleted`, {
        code: 'Gone',
        retryPolicy: 'waiting',
        afterMs: 1000,
      }),
    );
  }
  const desired = partObject(apply);
  const differs = drift(desired, before, fieldManager(author.reconciler)).length > 0;
  return { verb: differs ? 'configured' : 'unchanged', ref, desired, before, take: apply.forceOwnership };
}

/** The body of the apply of a part: the fields, and the identity with the uid, so that it can never create an object. */
function partObject(apply: FieldPatch): KubeObject {
  const { role: _role, apiVersion, kind, namespace, name, uid } = apply.part;
  return {
    apiVersion,
    kind,
    ...(apply.fields.spec === undefined ? {} : { spec: apply.fields.spec }),
    metadata: { ...apply.fields.metadata, name, ...(namespace === undefined ? {} : { namespace }), uid },
  };
}

function explicitRemovals(result: Result, stores: Stores): Removal[] {
  return (result.remove ?? []).flatMap((ref) => {
    const before = stores[ref.role].get(ref);
    return before?.metadata.uid === ref.uid ? [{ verb: 'removed', ref, before }] : [];
  });
}

function prunable(author: Author, stores: Stores): Removal[] {
  return rolesOf(stores).flatMap((role) =>
    stores[role].owned(author.reconciler, keyText(author.key)).map((before) => ({
      verb: 'removed',
      ref: { ...refOf(role, before), uid: before.metadata.uid ?? '' },
      before,
    })),
  );
}

/** Adds the label and the annotation that identify our objects. */
export function marked(object: KubeObject, author: Author): KubeObject {
  const { metadata } = object;
  return {
    ...object,
    metadata: {
      ...metadata,
      labels: {
        ...metadata.labels,
        'app.kubernetes.io/managed-by': 'pullwright',
        [OWNER_LABEL]: author.reconciler,
      },
      annotations: { ...metadata.annotations, [KEY_ANNOTATION]: keyText(author.key) },
    },
  };
}

/** Whether `object` has our label or fields that we applied. */
export function isOurs(object: KubeObject, author: Author): boolean {
  if (object.metadata.labels?.[OWNER_LABEL] === author.reconciler) return true;
  return applyEntry(object, fieldManager(author.reconciler)) !== undefined;
}

/** The reference to `object` in the cluster of `role`. */
export function refOf(role: Role, object: KubeObject): Ref {
  return { role, ...objectRef(object) };
}

/** Like {@link refOf}, with the uid: no later object with the same name matches. */
export function seenRef(role: Role, object: KubeObject): Ref {
  const { uid } = object.metadata;
  return { ...refOf(role, object), ...(uid === undefined ? {} : { uid }) };
}

/** Identifies an object of a pair of clusters, and sorts objects by role, namespace and kind. */
export function refText({ role, apiVersion, kind, namespace = '', name }: Ref): string {
  return `${role} ${namespace} ${kind} ${apiVersion} ${name}`;
}

/** The key that an object with our label belongs to; undefined when it is of another reconciler or scope. */
export function leftBehind(object: KubeObject, reconciler: string, scopeName: string): Request | undefined {
  if (object.metadata.labels?.[OWNER_LABEL] !== reconciler) return undefined;
  const text = object.metadata.annotations?.[KEY_ANNOTATION];
  const [scope, namespace, name] = typeof text === 'string' ? text.split('|') : [];
  if (scope !== scopeName || namespace === undefined || name === undefined) return undefined;
  return { scope, name, ...(namespace === '' ? {} : { namespace }) };
}
