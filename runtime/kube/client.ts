/**
 * The client of an API server: raw JSON objects, with Secret values wrapped. Every failure is a `PullwrightError` whose message
 * contains no credentials.
 */
import type { KubeObject } from '../core/kubernetes/object.ts';
import type { Redacted } from '../core/redacted.ts';
import type { AddressPolicy } from '../http/addresses.ts';
import type { Identity } from '../http/request.ts';
import type { Collection, ObjectRef } from './resources.ts';

/** Narrows a list or a watch. */
export interface Selector {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Only the metadata of each object is requested: `data`, `spec` and `status` do not leave the server. @default {false} */
  readonly metadataOnly?: boolean;
}

export interface ListPage {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
  /** Token of the next page. */
  readonly next?: string;
  /** Size of the response. */
  readonly bytes: number;
}

/** One event of a watch. A bookmark has only a resource version. */
export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: KubeObject }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string };

export interface ListOptions extends Selector {
  readonly limit?: number;
  readonly next?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WatchOptions extends Selector {
  readonly resourceVersion: string;
  /** The server ends the watch after this time. */
  readonly seconds: number;
  readonly signal: AbortSignal;
}

export interface ApplyOptions {
  readonly manager: string;
  /** Take fields from other managers. @default {false} */
  readonly force?: boolean;
  readonly subresource?: 'status';
  /** Returns what would be stored, and stores nothing. @default {false} */
  readonly dryRun?: boolean;
}

export interface RemoveOptions {
  /** Only the object with this uid. */
  readonly uid?: string | undefined;
  /** `Foreground`: the object stays until its dependents are deleted. @default {'Background'} */
  readonly propagation?: 'Background' | 'Foreground';
}

export interface KubeClient {
  /** `host:port`, for messages and metrics. */
  readonly host: string;
  /**
   * The object, or undefined when it or its kind does not exist.
   *
   * @param options tries of this request, for probes of an API server that may be down
   */
  get(ref: ObjectRef, options?: { readonly tries?: number }): Promise<KubeObject | undefined>;
  /** @throws PullwrightError `KindNotServed`; `AnswerTooLarge` for a page of more than 64 MiB */
  list(collection: Collection, options?: ListOptions): Promise<ListPage>;
  /**
   * Resolves once the server accepts the watch; ends when the server ends it. Throws ApiError 410 when the resource version is
   * too old.
   */
  watch(collection: Collection, options: WatchOptions): Promise<AsyncGenerator<WatchEvent>>;
  /** Server-side apply. Returns the stored object. */
  apply(object: KubeObject, options: ApplyOptions): Promise<KubeObject>;
  /** Fails with 409 `AlreadyExists` when the object exists. */
  create(object: KubeObject, manager: string, options?: Pick<ApplyOptions, 'dryRun'>): Promise<KubeObject>;
  /** Replaces the object if it still has the `metadata.resourceVersion` of `object`. */
  replace(object: KubeObject, manager: string): Promise<KubeObject>;
  jsonPatch(ref: ObjectRef, operations: readonly object[], manager: string): Promise<KubeObject>;
  mergePatch(ref: ObjectRef, patch: object, manager: string): Promise<KubeObject>;
  /** Deletes the object. Succeeds when it does not exist. */
  remove(ref: ObjectRef, options?: RemoveOptions): Promise<void>;
  close(): void;
}

// Connection to one API server: address, trusted CAs, and credentials.

/** Credentials for one request. */
export interface Credentials extends Identity {
  readonly token?: Redacted<string> | undefined;
}

/** One API server. TLS is always verified; there is no switch. */
export interface Connection {
  /** `https://host[:port][/path]` */
  readonly server: string;
  /** PEM of the trusted CAs. @default those of the system */
  readonly ca?: string | undefined;
  /** TLS server name, in place of the host of `server`. */
  readonly serverName?: string | undefined;
  /** Allowed addresses of the server, when its name is untrusted. @default any */
  readonly addresses?: AddressPolicy;
  /** Proxy URL, `http://[user:password@]host:port`. */
  readonly proxy?: Redacted<string> | undefined;
  /** Returns the current credentials; `refused` after a 401, so that cached ones are not returned again. */
  readonly credentials: (refused: boolean) => Promise<Credentials>;
}
