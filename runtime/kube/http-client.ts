/** {@link KubeClient} over HTTP: paths, headers, retries, and errors that contain no body. */

import { PullwrightError } from '../core/errors.ts';
import { describeObject, type KubeObject } from '../core/kubernetes/object.ts';
import { jsonOf, recordOf, textOf } from '../core/record.ts';
import { apiErrorOf } from './api-error.ts';
import type {
  ApplyOptions,
  KubeClient,
  ListOptions,
  ListPage,
  RemoveOptions,
  WatchEvent,
  WatchOptions,
} from './client.ts';
import { decodeObject, encodeObject } from './decode.ts';
import { type Call, Requester, type RequesterOptions } from './requester.ts';
import {
  type Collection,
  describeCollection,
  mayExist,
  notServed,
  type ObjectRef,
  objectRef,
  type Resource,
  ResourceMap,
} from './resources.ts';

// Parses a stream of JSON lines with a limit for each line. Takes linear time for lines of megabytes too.

/** A longer line fails the stream: no object of an API server is that large. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Yields the value of each line. Throws on invalid JSON and on a line that is too long. */
export async function* jsonLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator {
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      const line = Buffer.concat([...parts, chunk.subarray(from, end)]).toString('utf8');
      [parts, size, from] = [[], 0, end + 1];
      if (line.trim() !== '') yield parsed(line);
    }
    parts.push(chunk.subarray(from));
    size += chunk.length - from;
    if (size > MAX_LINE_BYTES)
      throw new PullwrightError(`Cannot read the watch: a line is longer than ${MAX_LINE_BYTES} bytes`, {
        code: 'AnswerTooLarge',
        hint: 'Check the API server and proxies in front of it: no stored object is so large',
      });
  }
}

/** Drops the message of the parser, which quotes the text: it may be of a Secret. */
function parsed(line: string): unknown {
  const value = jsonOf(line);
  if (value !== undefined) return value;
  throw new PullwrightError('Cannot read the watch: a line is not JSON', { code: 'WatchDamaged' });
}

/** A larger page of a list fails; the informer requests smaller ones. */
const MOST_PAGE_BYTES = 64 * 1024 * 1024;

/** See {@link KubeClient}. */
export class HttpKubeClient implements KubeClient {
  readonly host: string;
  readonly #requester: Requester;
  readonly #resources: ResourceMap;

  /** @param known kinds that need no discovery, in addition to those that every cluster serves */
  constructor(options: RequesterOptions, known: Readonly<Record<string, Resource>> = {}) {
    this.host = new URL(options.connection.server).host;
    this.#requester = new Requester(options);
    this.#resources = new ResourceMap((path) => this.#discover(path), known);
  }

  async get(ref: ObjectRef, options: Pick<Call, 'tries'> = {}): Promise<KubeObject | undefined> {
    const path = mayExist(ref) ? await this.#resources.objectPath(ref) : undefined;
    if (path === undefined) return undefined;
    const call = { verb: 'get', subject: describeObject(ref), method: 'GET', path, allow: [404], ...options };
    const { status, body } = await this.#requester.json(call);
    return status === 404 ? undefined : decode(body);
  }

  async list(collection: Collection, options: ListOptions = {}): Promise<ListPage> {
    const { apiVersion, kind } = collection;
    const query = { limit: options.limit, continue: options.next };
    const call = await this.#reading('list', collection, options, query);
    const { body, bytes } = await this.#requester.json({ ...call, maxBytes: MOST_PAGE_BYTES });
    const { items, metadata } = body as RawList;
    const next = metadata.continue ?? '';
    return {
      // The items of a typed list have neither apiVersion nor kind.
      items: (items ?? []).map((item) => decodeObject({ ...item, apiVersion, kind })),
      resourceVersion: metadata.resourceVersion ?? '',
      bytes,
      ...(next === '' ? {} : { next }),
    };
  }

  async watch(collection: Collection, options: WatchOptions): Promise<AsyncGenerator<WatchEvent>> {
    const { resourceVersion, seconds: timeoutSeconds } = options;
    const query = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion, timeoutSeconds };
    const call = await this.#reading('watch', collection, options, query);
    return watchEvents(jsonLines(await this.#requester.stream(call)), collection);
  }

  apply(object: KubeObject, options: ApplyOptions): Promise<KubeObject> {
    const { manager, force = false, dryRun, subresource } = options;
    return this.#write(objectRef(object), manager, {
      verb: 'apply',
      method: 'PATCH',
      suffix: subresource && `/${subresource}`,
      contentType: 'application/apply-patch+yaml',
      query: { force: String(force), dryRun: dryRun === true ? 'All' : undefined },
      body: object,
    });
  }

  create(
    object: KubeObject,
    manager: string,
    { dryRun }: Pick<ApplyOptions, 'dryRun'> = {},
  ): Promise<KubeObject> {
    return this.#write(objectRef(object), manager, {
      verb: 'create',
      method: 'POST',
      query: { dryRun: dryRun === true ? 'All' : undefined },
      body: object,
      // A retry of a create that succeeded would fail with AlreadyExists.
      once: true,
    });
  }

  replace(object: KubeObject, manager: string): Promise<KubeObject> {
    const call = { verb: 'update', method: 'PUT', body: object, once: true };
    return this.#write(objectRef(object), manager, call);
  }

  jsonPatch(ref: ObjectRef, operations: readonly object[], manager: string): Promise<KubeObject> {
    return this.#write(ref, manager, {
      verb: 'patch',
      method: 'PATCH',
      contentType: 'application/json-patch+json',
      body: operations,
      once: true,
    });
  }

  mergePatch(ref: ObjectRef, patch: object, manager: string): Promise<KubeObject> {
    return this.#write(ref, manager, {
      verb: 'patch',
      method: 'PATCH',
      contentType: 'application/merge-patch+json',
      body: patch,
    });
  }

  async remove(ref: ObjectRef, options: RemoveOptions = {}): Promise<void> {
    const path = mayExist(ref) ? await this.#resources.objectPath(ref) : undefined;
    if (path === undefined) return;
    const { uid, propagation: propagationPolicy = 'Background' } = options;
    const body = { propagationPolicy, preconditions: uid === undefined ? undefined : { uid } };
    const subject = describeObject(ref);
    await this.#requester.json({ verb: 'delete', subject, method: 'DELETE', path, body, allow: [404] });
  }

  /** The release of the API server, such as `v1.36.2`. */
  async serverVersion(): Promise<string> {
    const call = { verb: 'get', subject: 'the version', method: 'GET', path: '/version' };
    const { body } = await this.#requester.json(call);
    return textOf(recordOf(body)['gitVersion']);
  }

  close(): void {
    this.#requester.close();
  }

  async #reading(
    verb: 'list' | 'watch',
    collection: Collection,
    { labelSelector, fieldSelector, metadataOnly, signal }: ListOptions,
    query: Call['query'],
  ) {
    // For metadata only. A server that does not support it sends whole objects.
    const accept = `application/json;as=PartialObjectMetadata${verb === 'list' ? 'List' : ''};g=meta.k8s.io;v=v1,application/json`;
    return {
      verb,
      subject: describeCollection(collection),
      method: 'GET',
      path: await this.#collectionPath(collection),
      query: { labelSelector, fieldSelector, ...query },
      accept: metadataOnly === true ? accept : undefined,
      signal,
    };
  }

  async #write(ref: ObjectRef, manager: string, call: WriteCall): Promise<KubeObject> {
    const { suffix = '', query, body, ...rest } = call;
    const path = call.method === 'POST' ? await this.#collectionPath(ref) : await this.#objectPath(ref);
    const stored = await this.#requester.json({
      ...rest,
      subject: describeObject(ref),
      path: path + suffix,
      query: { fieldManager: manager, ...query },
      body: encodeObject(body),
    });
    return decode(stored.body);
  }

  async #objectPath(ref: ObjectRef): Promise<string> {
    return (await this.#resources.objectPath(ref)) ?? notServed(ref);
  }

  async #collectionPath(collection: Collection): Promise<string> {
    return (await this.#resources.collectionPath(collection)) ?? notServed(collection);
  }

  async #discover(path: string): Promise<unknown> {
    const call = { verb: 'discover', subject: path, method: 'GET', path, allow: [404] };
    const { status, body } = await this.#requester.json(call);
    return status === 404 ? undefined : body;
  }
}

type WriteCall = Omit<Call, 'subject' | 'path'> & { readonly suffix?: string | undefined };

interface RawList {
  readonly items?: readonly object[] | null;
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string };
}

interface RawEvent {
  readonly type: string;
  readonly object: Readonly<Record<string, unknown>> & {
    readonly code?: number;
    readonly metadata?: { readonly resourceVersion?: string };
  };
}

/** One event for each line. @throws ApiError when the server ends the watch with an error */
async function* watchEvents(
  lines: AsyncIterable<unknown>,
  collection: Collection,
): AsyncGenerator<WatchEvent> {
  for await (const line of lines) {
    const { type, object } = line as RawEvent;
    if (type === 'ERROR') {
      const subject = describeCollection(collection);
      throw apiErrorOf({ verb: 'watch', subject, status: object.code ?? 500, body: object });
    }
    // With metadata only, the server sends the kind PartialObjectMetadata.
    const { apiVersion, kind } = collection;
    if (type === 'BOOKMARK') yield { type, resourceVersion: object.metadata?.resourceVersion ?? '' };
    else yield { type: type as 'ADDED', object: decodeObject({ ...object, apiVersion, kind }) };
  }
}

function decode(body: unknown): KubeObject {
  return decodeObject(body as Readonly<Record<string, unknown>>);
}
