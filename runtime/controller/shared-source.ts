/**
 * One watch over all namespaces, seen from one of them. Hundreds of hosted clusters would otherwise cost hundreds of
 * connections per kind.
 *
 * Watches per namespace of 500 hosted clusters were 4,500 connections to one API server. Three namespaces get a watch of their
 * own; the fourth and all later ones share one over all, unless rights end at single namespaces.
 */
import { isApiError } from '../kube/api-error.ts';
import type { ChangeListener, Selection, Source, SourceStatus } from './source.ts';

/** The watch over all namespaces: a source that can tell of one place only. */
export interface WideSource extends Source {
  /** As `subscribe`, for what is at `place` only ({@link watchPlaceOf}). */
  subscribeAt(place: string, listener: ChangeListener): () => void;
}

/** A namespace, or one name in it. */
export function watchPlaceOf(namespace: string, name: string | undefined): string {
  return name === undefined ? namespace : `${namespace}/${name}`;
}

/** Whether the rights do not reach beyond single namespaces. What could be read once is not given up for it. */
export function isDenied({ is, error }: SourceStatus): boolean {
  return is === 'new' && isApiError(error, 403);
}

export interface SharedSourceOptions {
  readonly selection: Selection & { readonly namespace: string };
  readonly wide: WideSource;
  /** The watch of this namespace alone, where the rights reach no further. */
  readonly alone: () => Source;
}

export class SharedSource implements Source {
  readonly selection: Selection;
  readonly #alone: () => Source;
  readonly #listeners = new Map<ChangeListener, () => void>();
  readonly #statusListeners = new Set<() => void>();
  #follows: { readonly source: Source; subscribe(listener: ChangeListener): () => void };
  #endStatus: () => void;

  constructor({ selection, wide, alone }: SharedSourceOptions) {
    this.selection = selection;
    this.#alone = alone;
    const place = watchPlaceOf(selection.namespace, selection.name);
    this.#follows = { source: wide, subscribe: (listener) => wide.subscribeAt(place, listener) };
    this.#endStatus = wide.onStatus(() => {
      if (isDenied(wide.status)) this.#goAlone();
      this.#tellStatus();
    });
  }

  get status(): SourceStatus {
    return this.#follows.source.status;
  }

  subscribe(listener: ChangeListener): () => void {
    this.#listeners.set(listener, this.#follows.subscribe(listener));
    return () => {
      this.#listeners.get(listener)?.();
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#endStatus();
    };
  }

  onStatus(listener: () => void): () => void {
    this.#statusListeners.add(listener);
    return () => this.#statusListeners.delete(listener);
  }

  #tellStatus(): void {
    for (const listener of this.#statusListeners) listener();
  }

  #goAlone(): void {
    const source = this.#alone();
    this.#endStatus();
    this.#follows = { source, subscribe: (listener) => source.subscribe(listener) };
    this.#endStatus = source.onStatus(() => this.#tellStatus());
    for (const [listener, end] of this.#listeners) {
      end();
      this.#listeners.set(listener, source.subscribe(listener));
    }
  }
}
