/** The watches of one reconciler in one scope: their sources, whether all are synced, and their errors. */
import type { PullwrightError } from '../core/errors.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { type Logger, problemFields } from '../core/logger.ts';
import { isApiError } from '../kube/api-error.ts';
import type { ClusterCache, Source } from './cache.ts';
import type { Clusters } from './cluster.ts';
import {
  type ClusterPair,
  CONTROL_PLANE_NAMESPACE,
  HOSTED_CLUSTER_NAME,
  HOSTED_CLUSTER_NAMESPACE,
  type Reader,
  type Ref,
  type Role,
  type Watch,
} from './contract.ts';
import { kindKey, readName, readNamespace } from './store.ts';

export interface CacheSyncOptions {
  readonly reads: readonly Watch[];
  readonly scope: ClusterPair;
  readonly clusters: Clusters;
  /** Whether RBAC covers the namespaces of all hosted clusters, which then share their watches. */
  readonly isWide: boolean;
  readonly log: Logger;
  readonly onChange: (role: Role, object: KubeObject, knownTo?: string) => void;
  /** Called when all watches are synced, and when one recovers. */
  readonly onReadable: () => void;
}

interface Reading {
  readonly read: Watch;
  readonly source: Source;
}

const NONE: ReadonlySet<string> = new Set();

export class CacheSync {
  readonly #options: CacheSyncOptions;
  readonly #readings: Reading[] = [];
  readonly #ends: (() => unknown)[] = [];
  readonly #said = new Map<Source, string>();
  #synced = false;
  #values: ReadonlySet<string> = NONE;
  #reading: Promise<void> | undefined;

  constructor(options: CacheSyncOptions) {
    this.#options = options;
  }

  /** Whether all watches have synced once. */
  get synced(): boolean {
    return this.#synced;
  }

  /** The first watch that is not synced, and why. */
  get waitingFor(): string | undefined {
    const reading = this.#readings.find((one) => !isSettled(one));
    if (reading === undefined) return undefined;
    const { selection, status } = reading.source;
    return status.error?.message ?? `${selection.kind} is not synced yet`;
  }

  /** The error of the first failing watch of the hosted cluster. */
  get hostedFailure(): PullwrightError | undefined {
    const failing = this.#readings.find(
      ({ read, source }) =>
        read.role === 'hosted' && source.status.error !== undefined && !isDispensed(read, source),
    );
    return failing?.source.status.error;
  }

  start(): void {
    const { reads, scope, clusters, isWide, onChange } = this.#options;
    for (const read of reads) {
      const source = sourceOf(clusters[read.role].cache, read, scope, isWide);
      if (source === undefined) continue;
      this.#readings.push({ read, source });
      this.#ends.push(
        source.subscribe((object, knownTo) => {
          if (this.#synced) onChange(read.role, object, knownTo);
        }),
        source.onStatus(() => this.#statusChanged(read, source)),
      );
    }
    this.#checkSynced();
  }

  stop(): void {
    void this.#want(NONE);
    for (const end of this.#ends.splice(0)) end();
  }

  /** Keeps the values of these Secrets in the cache from now on (`Reconciler.secretsToRead`). */
  readValues(wanted: ReadonlySet<string> = NONE): void {
    if (wanted === this.#values) return;
    this.#values = wanted;
    this.#reading = this.#read(wanted);
  }

  async #read(wanted: ReadonlySet<string>): Promise<void> {
    await this.#want(wanted);
    if (this.#values === wanted) this.#reading = undefined;
  }

  /** Calls `then` once the required values are read: at once, if they are. */
  whenRead(then: () => void): void {
    if (this.#reading === undefined) then();
    else void this.#reading.then(() => this.whenRead(then));
  }

  async #want(places: ReadonlySet<string>): Promise<void> {
    await Promise.all(this.#readings.map(({ source }) => source.want?.(this, places) ?? Promise.resolve()));
  }

  /** Calls `visit` for every readable object. */
  each(visit: (role: Role, object: KubeObject) => void): void {
    const { clusters } = this.#options;
    for (const { read, source } of this.#readings) {
      const { store } = clusters[read.role].cache;
      const { apiVersion, kind, namespace, name } = source.selection;
      const byName = namespace !== undefined && name !== undefined;
      const one = byName ? store.get({ apiVersion, kind, namespace, name }) : undefined;
      for (const object of byName ? [one] : store.list(read, namespace))
        if (object !== undefined) visit(read.role, object);
    }
  }

  /** Whether the cluster of the role serves the kind; false for a kind that is not watched. */
  serves({ role, ...kind }: Parameters<Reader['serves']>[0]): boolean {
    const { clusters } = this.#options;
    return this.#readings.some(
      ({ read, source }) =>
        clusters[read.role] === clusters[role] &&
        kindKey(read) === kindKey(kind) &&
        source.status.is === 'synced',
    );
  }

  /** Whether RBAC does not allow to read the object, which is optional. */
  isUnreadable(ref: Ref): boolean {
    return this.#readings.some(
      ({ read, source }) =>
        read.role === ref.role &&
        kindKey(read) === kindKey(ref) &&
        (source.selection.name ?? ref.name) === ref.name &&
        (source.selection.namespace ?? ref.namespace) === ref.namespace &&
        isDispensed(read, source),
    );
  }

  #statusChanged(read: Watch, source: Source): void {
    this.#say(read, source);
    if (this.#synced && source.status.error === undefined) this.#options.onReadable();
    else this.#checkSynced();
  }

  /** Logs the state of a watch, once per change. */
  #say(read: Watch, source: Source): void {
    const { log } = this.#options;
    const { is, error } = source.status;
    const text = error?.message ?? is;
    if (this.#said.get(source) === text) return;
    this.#said.set(source, text);
    const { namespace, name } = source.selection;
    // RBAC can be granted by name: without the name, eight watches of one kind would log eight equal lines.
    const fields = {
      kind: read.kind,
      apiVersion: read.apiVersion,
      role: read.role,
      ...(name === undefined ? {} : { resource: namespace === undefined ? name : `${namespace}/${name}` }),
    };
    if (error !== undefined) log.warn('cannot watch', { ...fields, ...problemFields(error) });
    else if (is === 'missing')
      log[read.optional === true ? 'info' : 'warn']('kind is not served by the API server', fields);
    else log.debug('watching', fields);
  }

  #checkSynced(): void {
    if (this.#synced || !this.#readings.every(isSettled)) return;
    this.#synced = true;
    this.#options.log.info('caches are synced');
    this.#options.onReadable();
  }
}

const PER_CLUSTER: ReadonlySet<string> = new Set([CONTROL_PLANE_NAMESPACE, HOSTED_CLUSTER_NAMESPACE]);

/**
 * Undefined for a watch that covers nothing in this scope. Hosted clusters share one watch when RBAC covers all their namespaces.
 */
function sourceOf(cache: ClusterCache, read: Watch, scope: ClusterPair, isWide: boolean): Source | undefined {
  const { role: _role, namespace: _namespace, name: _name, ...common } = read;
  const namespace = readNamespace(read, scope);
  const name = readName(read, scope);
  if (namespace === '-') return undefined;
  const named = { ...common, ...(name === undefined ? {} : { name }) };
  if (namespace === undefined) return cache.source(named);
  const selection = { ...named, namespace };
  if (!isWide || scope.hostedCluster === undefined || !PER_CLUSTER.has(read.namespace ?? ''))
    return cache.source(selection);
  return cache.sharedSource(selection, read.name?.includes(HOSTED_CLUSTER_NAME) === true ? common : named);
}

function isSettled({ read, source }: Reading): boolean {
  return (
    source.status.is === 'synced' ||
    (source.status.is === 'missing' && read.optional === true) ||
    isDispensed(read, source)
  );
}

function isDispensed({ dispensable }: Watch, { status }: Source): boolean {
  return dispensable === true && isApiError(status.error, 403);
}
