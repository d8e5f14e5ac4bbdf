/** What readers of a cluster's objects see of an informer. */
import type { PullwrightError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';

/** One collection, with what narrows it. A {@link Read} whose namespace is resolved. */
export interface Selection {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** See {@link Read}. */
  readonly values?: 'on-demand';
}

/** Told about every change of what a source covers. `knownTo`: the author who wrote it, saw the answer, and needs not hear of it. */
export type ChangeListener = (object: KubeObject, knownTo?: string) => void;

export interface Source {
  readonly selection: Selection;
  readonly status: SourceStatus;
  /** Calls `listener` for every change from now on; gives the way to stop that. */
  subscribe(listener: ChangeListener): () => void;
  /** Calls back when the status changes. */
  onStatus(listener: () => void): () => void;
  /**
   * Has the values of these Secrets (`<namespace>/<name>`) read from now on, and those of no others that `who` wanted. Only where they are
   * not read anyway.
   *
   * @returns settled once each of them was asked for, whether there was an answer or not
   */
  want?(who: object, places: ReadonlySet<string>): Promise<unknown>;
}

export interface SourceStatus {
  /** `new` until the first list, or until it is known that the kind is missing. */
  readonly is: 'new' | 'synced' | 'missing';
  /** Why it cannot be read at the moment. */
  readonly error?: PullwrightError;
}
