/** A {@link World} over object stores: what one reconciler may see of one scope. */
import type { KubeObject } from '../rules/kube-object.ts';
import type { Fact, Need, Query, Read, Ref, Role, Scope, World } from './contract.ts';
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
}

/** Gives the view. An object outside the reads is not there, so that a missing `Read` shows in the first test, not in a cluster. */
export function worldView(input: WorldInput): World {
  const visible = (role: Role, object: KubeObject | undefined): boolean =>
    object !== undefined &&
    input.reads.some((read) => sameCluster(read.role, role, input) && covers(read, object, input.scope));
  return {
    scope: input.scope,
    now: input.now,
    get(ref: Ref) {
      const object = input.stores[ref.role].get(ref);
      if (!visible(ref.role, object)) return undefined;
      return ref.uid === undefined || ref.uid === object?.metadata.uid ? object : undefined;
    },
    list(query: Query) {
      return input.stores[query.role]
        .list(query, query.namespace)
        .filter((object) => selected(query, object) && visible(query.role, object));
    },
    fact: input.fact,
    serves: (kind) => input.serves(kind.role, kindKey(kind)),
  };
}

/** In a stand-alone cluster both roles are one store, and a read of either role covers it. */
function sameCluster(a: Role, b: Role, input: WorldInput): boolean {
  return a === b || input.stores[a] === input.stores[b];
}

function selected(query: Query, object: KubeObject): boolean {
  return Object.entries(query.labels ?? {}).every(([key, value]) => object.metadata.labels?.[key] === value);
}
