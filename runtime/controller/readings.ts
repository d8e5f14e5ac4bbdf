/** What one reconciler reads in one scope: its sources, whether all have been seen once, and what is wrong with them. */
import type { KubeObject } from '../rules/kube-object.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Cluster } from './cluster.ts';
import type { Selection, Source } from './cluster-cache.ts';
import type { Read, Role, Scope } from './contract.ts';
import { readNamespace } from './selection.ts';

export interface ReadingsOptions {
  readonly reads: readonly Read[];
  readonly scope: Scope;
  readonly clusters: Readonly<Record<Role, Cluster>>;
  readonly log: Logger;
  readonly onChange: (role: Role, object: KubeObject) => void;
  /** All has been seen once, or can be read again after it could not. */
  readonly onReadable: () => void;
}

interface Reading {
  readonly read: Read;
  readonly source: Source;
}

export class Readings {
  readonly #options: ReadingsOptions;
  readonly #readings: Reading[] = [];
  readonly #ends: (() => unknown)[] = [];
  readonly #said = new Map<Source, string>();
  #synced = false;

  constructor(options: ReadingsOptions) {
    this.#options = options;
  }

  /** Whether everything has been seen once. */
  get synced(): boolean {
    return this.#synced;
  }

  /** What cannot be read at the moment. */
  get waitingFor(): string | undefined {
    const reading = this.#readings.find((one) => !isSettled(one));
    if (reading === undefined) return undefined;
    const { selection, status } = reading.source;
    return status.error?.message ?? `${selection.kind} is not read yet`;
  }

  start(): void {
    const { reads, scope, clusters, onChange } = this.#options;
    for (const read of reads) {
      const selection = selectionOf(read, scope);
      if (selection === undefined) continue;
      const source = clusters[read.role].cache.source(selection);
      this.#readings.push({ read, source });
      this.#ends.push(
        source.subscribe((object) => {
          if (this.#synced) onChange(read.role, object);
        }),
        source.onStatus(() => this.#statusChanged(read, source)),
      );
    }
    this.#checkSynced();
  }

  stop(): void {
    for (const end of this.#ends.splice(0)) end();
  }

  /** Calls `visit` for every object that is there to read. */
  each(visit: (role: Role, object: KubeObject) => void): void {
    const { clusters, scope } = this.#options;
    for (const { read } of this.#readings)
      for (const object of clusters[read.role].cache.store.list(read, readNamespace(read, scope)))
        visit(read.role, object);
  }

  /** Whether the cluster of `role` serves `kind` (`apiVersion/Kind`), as far as it is read. */
  serves(role: Role, kind: string): boolean {
    const { clusters } = this.#options;
    return this.#readings.some(
      ({ read, source }) =>
        clusters[read.role] === clusters[role] &&
        `${read.apiVersion}/${read.kind}` === kind &&
        source.status.is === 'synced',
    );
  }

  #statusChanged(read: Read, source: Source): void {
    this.#say(read, source);
    if (this.#synced && source.status.error === undefined) this.#options.onReadable();
    else this.#checkSynced();
  }

  /** Once per change. */
  #say(read: Read, source: Source): void {
    const { log } = this.#options;
    const { is, error } = source.status;
    const text = error?.message ?? is;
    if (this.#said.get(source) === text) return;
    this.#said.set(source, text);
    const fields = { kind: read.kind, apiVersion: read.apiVersion, role: read.role };
    if (error !== undefined)
      log.warn('cannot watch', { ...fields, code: error.code, problem: error.message, hint: error.hint });
    else if (is === 'missing') log.warn('kind is not served by the cluster', fields);
    else log.debug('watching', fields);
  }

  #checkSynced(): void {
    if (this.#synced || !this.#readings.every(isSettled)) return;
    this.#synced = true;
    this.#options.log.info('caches are filled');
    this.#options.onReadable();
  }
}

/** Undefined for a read that cannot cover anything in this scope. */
function selectionOf(read: Read, scope: Scope): Selection | undefined {
  const { apiVersion, kind, name, labelSelector, fieldSelector } = read;
  const namespace = readNamespace(read, scope);
  if (namespace === '-') return undefined;
  return {
    apiVersion,
    kind,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  };
}

function isSettled({ read, source }: Reading): boolean {
  return source.status.is === 'synced' || (source.status.is === 'missing' && read.optional === true);
}
