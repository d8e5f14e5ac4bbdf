/** A {@link World} over object stores: what one reconciler may see of one scope. */
import type { KubeObject } from '../rules/kubernetes/object.ts';
import type { Fact, Need, PodTrial, Query, Read, Ref, Role, Scope, TrialAnswer, World } from './contract.ts';
import { covers } from './selection.ts';
import { kindKey, type ObjectStore } from './store.ts';

/** Input of {@link worldView}. */
export interface WorldInput {
  readonly scope: Scope;
  readonly now: Date;
  readonly stores: Readonly<Record<Role, ObjectStore>>;
  readonly reads: readonly Read[];
  /** Whether the cluster of `role` knows the kind. */
  readonly serves: (role: Role, kind: string) => boolean;
  readonly fact: (need: Need) => Fact | undefined;
  /** @default nothing was tried */
  readonly trial?: (one: PodTrial) => TrialAnswer | undefined;
  /** Whether the account may not read what covers the object. @default {() => false} */
  readonly isUnreadable?: (ref: Ref) => boolean;
  /** @default {no write was refused} */
  readonly refusal?: World['refusal'];
}

/** Gives the view. An object outside the reads is not there, so that a missing `Read` shows in the first test, not in a cluster. */
export function worldView(input: WorldInput): World {
  const { scope, stores, reads } = input;
  const readsOf = (role: Role, kind: string): readonly Read[] => {
    const found = byKind(reads).get(kind) ?? [];
    return stores.hosted === stores.management ? found : found.filter((read) => read.role === role);
  };
  return {
    scope,
    now: input.now,
    get(ref: Ref) {
      const object = stores[ref.role].get(ref);
      if (object === undefined || (ref.uid !== undefined && ref.uid !== object.metadata.uid))
        return undefined;
      return readsOf(ref.role, kindKey(ref)).some((read) => covers(read, object, scope)) ? object : undefined;
    },
    list(query: Query) {
      const objects = stores[query.role].list(query, query.namespace);
      const found = readsOf(query.role, kindKey(query));
      if (query.labels === undefined && found.some(coversAll)) return objects;
      return objects.filter(
        (object) => selected(query, object) && found.some((read) => covers(read, object, scope)),
      );
    },
    fact: input.fact,
    trial: (one) => input.trial?.(one),
    refusal: (ref) => input.refusal?.(ref),
    isUnreadable: (ref) => input.isUnreadable?.(ref) ?? false,
    serves: (kind) => input.serves(kind.role, kindKey(kind)),
  };
}

const indexes = new WeakMap<readonly Read[], ReadonlyMap<string, readonly Read[]>>();

/** In a stand-alone cluster both roles are one store, and a read of either role covers it. */
function byKind(reads: readonly Read[]): ReadonlyMap<string, readonly Read[]> {
  const known = indexes.get(reads) ?? Map.groupBy(reads, kindKey);
  indexes.set(reads, known);
  return known;
}

/** Whether a read has nothing that narrows it: the list is then the store's own, the same one until something changes. */
function coversAll({ namespace, name, labelSelector, fieldSelector }: Read): boolean {
  return (
    namespace === undefined &&
    name === undefined &&
    labelSelector === undefined &&
    fieldSelector === undefined
  );
}

function selected(query: Query, object: KubeObject): boolean {
  return Object.entries(query.labels ?? {}).every(([key, value]) => object.metadata.labels?.[key] === value);
}
