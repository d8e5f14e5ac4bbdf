/**
 * The engine without a cluster: runs every reconciler over object stores until nothing changes any more. Modifies the stores in
 * place, and returns the changes.
 */
import { isDeepStrictEqual } from 'node:util';
import { PullwrightError } from '../../core/errors.ts';
import { describeObject, type KubeObject } from '../../core/kubernetes/object.ts';
import { oncePer } from '../../core/record.ts';
import { applied, withManager } from '../../kube/drift.ts';
import { type Author, type ChangeSet, changesOf, fieldManager, keyText, refOf, refText } from '../changes.ts';
import {
  type ClusterPair,
  type Lookup,
  type LookupResult,
  OWNER_LABEL,
  type Reader,
  type ReconcileError,
  type Reconciler,
  type Ref,
  type Request,
  type Result,
  withIdentity,
  withoutSyntheticIdentity,
} from '../contract.ts';
import { covers, createReader, kindKey, rolesOf, type Stores } from '../store.ts';

/** Input of {@link runOffline}. */
export interface OfflineInput {
  readonly reconcilers: readonly Reconciler[];
  readonly scope: ClusterPair;
  /** The same store twice for a stand-alone cluster. */
  readonly stores: Stores;
  readonly facts?: (need: Lookup) => LookupResult | undefined;
  readonly now: Date;
}

/** The change of one object by the run. */
export interface ObjectResult {
  readonly verb: 'created' | 'configured' | 'unchanged' | 'removed';
  readonly reconciler: string;
  readonly ref: Ref;
  readonly before?: KubeObject;
  readonly after?: KubeObject;
}

/** The result of a reconciler for one key in the last round. */
export type KeyReport = Readonly<ReturnType<typeof reportOf>>;

export interface OfflineResult {
  readonly objects: readonly ObjectResult[];
  readonly reports: readonly KeyReport[];
}

/** Maximum passes per key; reconcilers that still change objects after that never settle. */
const MAX_PASSES = 12;

interface Pending {
  readonly reconciler: Reconciler;
  readonly key: Request;
}

/**
 * Reconciles to a fixed point.
 *
 * @returns every object that a reconciler writes, changed or not, and the reports
 * @throws PullwrightError `NotSettling` with the objects that keep changing
 */
export function runOffline(input: OfflineInput): OfflineResult {
  return new OfflineRun(input).run();
}

class OfflineRun {
  readonly #input: OfflineInput;
  /** The written objects, in their state before the run. */
  readonly #touched = new Map<string, Touched>();
  readonly #reports = new Map<string, KeyReport>();
  readonly #passes = new Map<string, { count: number; changed: Ref | undefined }>();

  constructor(input: OfflineInput) {
    const here = input.reconcilers.filter((reconciler) => reconciler.only?.has(input.scope.name) ?? true);
    this.#input = { ...input, reconcilers: here };
  }

  run(): OfflineResult {
    const { stores } = this.#input;
    const all = rolesOf(stores).flatMap((role) => [...stores[role]].map((object) => refOf(role, object)));
    let pending = this.#keysOf(all);
    while (pending.length > 0) {
      const changed = pending.flatMap((one) => this.#reconcile(one));
      pending = this.#keysOf(changed);
    }
    const objects = [...this.#touched.values()]
      .flatMap((one) => resultFor(one, stores[one.ref.role].get(one.ref)))
      .sort((a, b) => (refText(a.ref) < refText(b.ref) ? -1 : 1));
    return { objects, reports: [...this.#reports.values()] };
  }

  readonly #readerOf = oncePer((reconciler: Reconciler): Reader => {
    const { stores, scope, now, facts } = this.#input;
    const served = new Set([...stores.hosted, ...stores.management].map(kindKey));
    return createReader({
      scope,
      now,
      stores,
      reads: reconciler.watches,
      serves: (kind) => served.has(kindKey(kind)),
      ...(facts === undefined ? {} : { lookup: facts }),
      // A folder also contains objects that no watch covers.
      refusal: (ref) => {
        const found = stores[ref.role].get(ref);
        const isForeign = found !== undefined && found.metadata.labels?.[OWNER_LABEL] !== reconciler.name;
        const message = `"${describeObject(ref)}" exists and was not created by Pullwright`;
        return isForeign ? { retryPolicy: 'terminal', code: 'ForeignObject', message } : undefined;
      },
    });
  });

  /** The keys to reconcile after a change of `refs`, without duplicates, in a stable order. */
  #keysOf(refs: readonly Ref[]): Pending[] {
    const found = new Map<string, Pending>();
    for (const reconciler of this.#input.reconcilers) {
      const reader = this.#readerOf(reconciler);
      for (const ref of refs) {
        if (!this.#reads(reconciler, ref)) continue;
        for (const key of reconciler.requestsFor(ref, reader))
          found.set(`${reconciler.name} ${keyText(key)}`, { reconciler, key });
      }
    }
    return [...found.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, pending]) => pending);
  }

  #reads(reconciler: Reconciler, ref: Ref): boolean {
    const { stores, scope } = this.#input;
    const alone = stores.hosted === stores.management;
    const object = stores[ref.role].get(ref) ?? this.#touched.get(refText(ref))?.before;
    return (
      object !== undefined &&
      reconciler.watches.some((read) => (alone || read.role === ref.role) && covers(read, object, scope))
    );
  }

  #reconcile({ reconciler, key }: Pending): Ref[] {
    const outcome = reconciler.reconcile(this.#readerOf(reconciler), key);
    const author: Author = { reconciler: reconciler.name, key };
    const changes = changesOf(outcome, author, this.#input.stores);
    const refused = changes.flatMap((change) => (change.verb === 'refused' ? [change.problem] : []));
    this.#reports.set(`${author.reconciler} ${keyText(key)}`, reportOf(author, outcome, refused));
    const changed = [
      ...changes.flatMap((change) => this.#commit(change, author)),
      ...this.#commitStatus(outcome, author),
    ];
    this.#count(author, changed[0]);
    return changed;
  }

  /** Writes a change to the stores. Returns the object if it changed. */
  #commit(change: ChangeSet, author: Author): Ref[] {
    if (change.verb === 'refused') return [];
    this.#remember(change.ref, author);
    const store = this.#input.stores[change.ref.role];
    if (change.verb === 'removed') {
      store.delete(change.ref);
      return [change.ref];
    }
    if (change.verb === 'unchanged') return [];
    const result = applied(change.desired, change.before, fieldManager(author.reconciler));
    store.set(change.verb === 'created' ? withIdentity(result) : result);
    return [change.ref];
  }

  #commitStatus(outcome: Result, author: Author): Ref[] {
    return (outcome.status ?? []).flatMap(({ ref, status }) => {
      const store = this.#input.stores[ref.role];
      const object = store.get(ref);
      if (object === undefined) return [];
      const next = { ...(object.status as Record<string, unknown> | undefined), ...status };
      if (isDeepStrictEqual(next, object.status)) return [];
      this.#remember(ref, author);
      store.set({ ...object, status: next });
      return [ref];
    });
  }

  #remember(ref: Ref, author: Author): void {
    const id = refText(ref);
    if (this.#touched.has(id)) return;
    const before = this.#input.stores[ref.role].get(ref);
    this.#touched.set(id, { reconciler: author.reconciler, ref, before });
  }

  #count(author: Author, changed: Ref | undefined): void {
    const id = `${author.reconciler} ${keyText(author.key)}`;
    const count = (this.#passes.get(id)?.count ?? 0) + 1;
    this.#passes.set(id, { count, changed });
    if (count < MAX_PASSES || changed === undefined) return;
    const restless = [...this.#passes.values()].flatMap((pass) =>
      pass.count >= MAX_PASSES - 2 && pass.changed !== undefined ? [describeObject(pass.changed)] : [],
    );
    const names = [...new Set([describeObject(changed), ...restless])].slice(0, 2).map((name) => `"${name}"`);
    throw new PullwrightError(
      `Cannot reconcile: ${names.join(' and ')} ${names.length === 1 ? 'changes' : 'change'} in each of ${MAX_PASSES} rounds`,
      {
        code: 'NotSettling',
        retryPolicy: 'terminal',
        hint: 'Two declarations conflict on these objects: look for two owners of one field',
      },
    );
  }
}

type Touched = Pick<ObjectResult, 'reconciler' | 'ref'> & { readonly before: KubeObject | undefined };

/** Empty for an object that the run created and removed. */
function resultFor({ before, ...one }: Touched, after: KubeObject | undefined): ObjectResult[] {
  if (before === undefined) return after === undefined ? [] : [{ verb: 'created', ...one, after }];
  if (after === undefined) return [{ verb: 'removed', ...one, before }];
  return [{ verb: before === after ? 'unchanged' : 'configured', ...one, before, after }];
}

function reportOf(author: Author, outcome: Result, refused: readonly ReconcileError[]) {
  return {
    reconciler: author.reconciler,
    key: author.key,
    problems: [...(outcome.errors ?? []), ...refused],
    events: outcome.events ?? [],
    actions: outcome.actions ?? [],
    metrics: outcome.metrics ?? [],
    needs: outcome.lookups ?? [],
    /** Objects whose status it writes. */
    status: (outcome.status ?? []).map((patch) => patch.ref),
  };
}

/** The object for output, without fields that only the engine uses. */
export function withoutBookkeeping(object: KubeObject, reconcilers: readonly string[]): KubeObject {
  const bare = reconcilers.reduce((rest, name) => withManager(rest, fieldManager(name), {}), object);
  const { managedFields, ...metadata } = bare.metadata;
  const none = managedFields === undefined || managedFields.length === 0;
  return withoutSyntheticIdentity({ ...bare, metadata: none ? metadata : bare.metadata });
}
