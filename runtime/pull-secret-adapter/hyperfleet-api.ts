/** Client of the HyperFleet API. Supports the current API (PUT of statuses) and the one of the requirement (POST). */

import { z } from 'zod';
import { type BackOff, backOffMs } from '../core/back-off.ts';
import { PullwrightError } from '../core/errors.ts';
import { jsonOf, recordOf, textOf } from '../core/record.ts';
import { type Redacted, reveal } from '../core/redacted.ts';
import { type HttpClient, PASSING, retry, retryAfterMs } from '../http/client.ts';
import { HttpError } from '../http/http-error.ts';
import type { HttpRequest, WholeAnswer } from '../http/request.ts';
import { type AdapterStatus, adapterStatuses, clusterDocument, type HyperfleetCluster } from './cluster.ts';
import { CLUSTER_ID } from './places.ts';
import type { StatusBody } from './status-report.ts';

// One API call with its retries, back-off and limits. Response bodies stay in this file, because they contain pull secrets.

export interface HyperfleetOptions {
  /** Without path. */
  readonly baseUrl: string;
  /** Bearer token, requested again for every try. @default {no authentication} */
  readonly token?: () => Promise<Redacted<string>>;
  readonly userAgent: string;
  /** @default {10000} */
  readonly timeoutMs?: number;
  /** Maximum tries of one call, the first included. @default {4} */
  readonly tries?: number;
  /** Waits; rejects when the process shuts down. */
  readonly pause: (ms: number) => Promise<void>;
  readonly http: HttpClient;
  /** In [0, 1). */
  readonly random?: () => number;
  /** Called after every try; `status` is 0 without a response. */
  readonly onAnswer?: (seen: { readonly method: string; readonly status: number }) => void;
  /** Called for each skipped document of a list, which alone exceeds the size limit. `position` counts from 0. */
  readonly onLeftOut?: (seen: { readonly subject: string; readonly position: number }) => void;
}

/** A response; status 0 means that there was none from this API. */
export interface Answer {
  readonly status: number;
  /** Error code of the API, or the cause of the missing response. */
  readonly code: string;
  readonly body: unknown;
  readonly retryAfterMs?: number | undefined;
}

const MOST_BYTES = 32 * 1024 * 1024;
const BACK_OFF: BackOff = { firstMs: 250, maxMs: 4000 };
/** Longest Retry-After to wait for; longer ones requeue the message at the broker. */
const LONGEST_WAIT_MS = 30_000;

/** Retries 408, 429, 5xx and missing responses, and honours Retry-After. @throws PullwrightError */
export async function callHyperfleet(
  options: HyperfleetOptions,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const { baseUrl, token, userAgent, http, timeoutMs = 10_000, tries = 4, random = Math.random } = options;
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const attempt = async (): Promise<Answer> => {
    const headers = {
      accept: 'application/json, application/problem+json',
      'user-agent': userAgent,
      ...(token === undefined ? {} : { authorization: `Bearer ${reveal(await token())}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const answer = await once(http, { method, url: `${baseUrl}${path}`, headers, timeoutMs, ...content });
    options.onAnswer?.({ method, status: answer.status });
    return answer;
  };
  const answer = await retry(attempt, {
    tries,
    waitMs: (round) => backOffMs(BACK_OFF, round, random()),
    longestWaitMs: LONGEST_WAIT_MS,
    again: (tried) =>
      'value' in tried && isTrouble(tried.value) && !isTooLarge(tried.value)
        ? { afterMs: Math.min(tried.value.retryAfterMs ?? 0, LONGEST_WAIT_MS) }
        : undefined,
    pause: options.pause,
  });
  if (isTrouble(answer)) throw refused(method.toLowerCase(), path.split('?')[0] ?? path, answer);
  return answer;
}

function isTrouble({ status }: Answer): boolean {
  return status === 0 || status >= 500 || PASSING.includes(status);
}

async function once(http: HttpClient, request: HttpRequest): Promise<Answer> {
  try {
    return answerOf(await http.ask(request, MOST_BYTES));
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    const { failure, code } = error;
    const lost = code === undefined ? 'no connection' : `no connection (${code})`;
    return { status: 0, code: FAULTS[failure] ?? lost, body: undefined };
  }
}

/** Treats a body that is not JSON, such as a proxy or login page, as a missing response. */
function answerOf({ status, header, text }: WholeAnswer): Answer {
  const body = jsonOf(text || '{}');
  if (status < 300 && body === undefined) return { status: 0, code: `HTTP ${status} without JSON`, body };
  return {
    status,
    code: textOf(recordOf(body)['code']).slice(0, 64),
    body,
    retryAfterMs: retryAfterMs(header('retry-after'), Date.now()),
  };
}

const FAULTS: Readonly<Record<string, string>> = {
  AnswerTooLarge: 'response too large',
  Timeout: 'timed out',
};

function isTooLarge({ status, code }: Answer): boolean {
  return status === 0 && code === FAULTS['AnswerTooLarge'];
}

const HINTS: Readonly<Record<number, string>> = {
  401: 'Check the token file',
  403: 'Allow the identity of the adapter to write statuses',
  404: 'Check the base URL of the API',
};

/** Converts a failed response to an error: `terminal` if it concerns this cluster only, so that no retry can succeed. */
export function refused(verb: string, subject: string, answer: Answer): PullwrightError {
  const { status } = answer;
  const said = [status === 0 ? undefined : `HTTP ${status}`, answer.code].filter(Boolean).join(' ');
  const hint = status >= 300 && status < 400 ? HINTS[404] : HINTS[status];
  const denied = status === 401 || status === 403;
  const own = status >= 400 && status < 500 && ![401, 403, 404, 405, 408, 429].includes(status);
  return new PullwrightError(`Cannot ${verb} "${subject}": HyperFleet API request failed: ${said}`, {
    code: denied
      ? 'ApiAccessDenied'
      : own
        ? 'ApiRefused'
        : isTooLarge(answer)
          ? 'AnswerTooLarge'
          : 'ApiUnavailable',
    ...(own ? { retryPolicy: 'terminal' as const } : {}),
    ...(hint === undefined ? {} : { hint }),
  });
}

const CLUSTERS = '/api/hyperfleet/v1/clusters';
const PAGE_SIZE = 100;
/** More consecutive oversized documents than this are an error of the API. */
const MOST_LEFT_OUT = 10;
/** Highest page number that the API accepts. */
const MOST_PAGES = 100_000;
/** Maximum reads of a list that changes while it is read. */
const MAX_PASSES = 3;

export class HyperfleetApi {
  readonly #options: HyperfleetOptions;
  /** `PUT` for the current API, `POST` for the required one. Detected by the first report. */
  #method: 'PUT' | 'POST' = 'PUT';

  constructor(options: HyperfleetOptions) {
    this.#options = options;
  }

  /** Returns the cluster, or undefined if it no longer exists. @throws PullwrightError */
  async cluster(id: string): Promise<HyperfleetCluster | undefined> {
    const answer = await callHyperfleet(this.#options, 'GET', `${CLUSTERS}/${encodeURIComponent(id)}`);
    if (isGone(answer)) return undefined;
    if (answer.status !== 200) throw refused('read cluster', id, answer);
    const { data, error } = clusterDocument.safeParse(answer.body);
    if (data?.id === id) return data;
    const problem = error
      ? `the cluster document ${error.issues[0]?.message}`
      : 'the API returned another cluster';
    throw new PullwrightError(`Cannot read cluster "${id}": ${problem}`, {
      code: 'ClusterFetchFailed',
      retryPolicy: 'terminal',
    });
  }

  /** Returns the reports of all adapters; empty if the cluster no longer exists. @throws PullwrightError */
  async statuses(id: string): Promise<readonly AdapterStatus[]> {
    const found = new Map<string, AdapterStatus>();
    const path = `${CLUSTERS}/${encodeURIComponent(id)}/statuses`;
    for await (const items of this.#pages(path, ['read the statuses of', id], {})) {
      for (const status of adapterStatuses.parse(items)) found.set(status.adapter, status);
    }
    return [...found.values()];
  }

  /**
   * Yields every cluster once, page by page: documents contain pull secrets of up to 64 KiB, so the list is never held in memory.
   * New and deleted clusters shift others between pages, so a list whose total changed is read again for skipped clusters.
   *
   * @throws PullwrightError
   */
  async *clusters(search: string): AsyncGenerator<readonly HyperfleetCluster[], void, undefined> {
    const seen = new Set<string>();
    const lengths = new Set<number>();
    for (let pass = 1; pass <= MAX_PASSES; pass += 1) {
      lengths.clear();
      const query = search === '' ? {} : { search };
      for await (const items of this.#pages(CLUSTERS, ['list', 'clusters'], query, lengths)) {
        // Others are skipped. The ID must be safe in a path and an object name.
        const valid = items
          .flatMap((item) => clusterDocument.safeParse(item).data ?? [])
          .filter(({ id }) => CLUSTER_ID.test(id));
        yield valid.filter(({ id }) => seen.size < seen.add(id).size);
      }
      if (lengths.size < 2) return;
    }
  }

  /** Sends a report. `discarded`: the API has a newer one; `gone`: the cluster no longer exists. @throws PullwrightError */
  async report(id: string, body: StatusBody): Promise<'stored' | 'discarded' | 'gone'> {
    const path = `${CLUSTERS}/${encodeURIComponent(id)}/statuses`;
    let method = this.#method;
    let answer = await callHyperfleet(this.#options, method, path, body);
    if (answer.status === 405) {
      method = method === 'PUT' ? 'POST' : 'PUT';
      answer = await callHyperfleet(this.#options, method, path, body);
      // Remember only a method that the API supports.
      if (answer.status !== 405) this.#method = method;
    }
    if (answer.status === 204) return 'discarded';
    if (answer.status >= 200 && answer.status < 300) return 'stored';
    if (isGone(answer)) return 'gone';
    throw refused('report the status of cluster', id, answer);
  }

  /**
   * Yields the items of each page. An oversized page is read document by document, and oversized documents are skipped.
   *
   * @param lengths receives the total that each page reports
   */
  async *#pages(
    path: string,
    [verb, subject]: readonly [string, string],
    query: Readonly<Record<string, string>>,
    lengths: Set<number> = new Set(),
  ): AsyncGenerator<readonly unknown[], void, undefined> {
    const fault = (code: string): PullwrightError =>
      refused(verb, subject, { status: 0, code, body: undefined });
    const read = async (page: number, size: number): Promise<Answer | undefined> => {
      // Parameter names of both API versions; each ignores those of the other.
      const [number, length] = [String(page), String(size)];
      const search = new URLSearchParams({ page: number, pageSize: length, ...query, size: length });
      search.sort();
      try {
        return await callHyperfleet(this.#options, 'GET', `${path}?${search.toString()}`);
      } catch (error) {
        if (error instanceof PullwrightError && error.code === 'AnswerTooLarge') return undefined;
        throw error;
      }
    };
    let [count, before] = [0, ''];
    for (let page = 1; page <= MOST_PAGES; page += 1) {
      for await (const { answer, size } of partsOf(read, page, fault)) {
        if (answer === undefined) {
          this.#options.onLeftOut?.({ subject, position: count });
          count += 1;
          continue;
        }
        if (isGone(answer)) return;
        if (answer.status !== 200) throw refused(verb, subject, answer);
        const { data: list } = listPage.safeParse(answer.body);
        if (list === undefined) throw refused(verb, subject, { ...answer, code: 'without a list' });
        const { items, total } = list;
        // The API, or a cache in front of it, ignores the page number. Pages of one document may repeat.
        const names = JSON.stringify(items.map(recordOf).map(({ id, adapter }) => [id, adapter]));
        if (items.length > 1 && names === before) throw fault('same page for every page number');
        yield items;
        [count, before] = [count + items.length, names];
        if (total !== undefined) lengths.add(total);
        if (items.length === 0 || (total === undefined ? items.length < size : count >= total)) return;
      }
    }
    throw fault('list without a last page');
  }
}

/** Yields the page, or each of its documents if the page is too large. @param read undefined if the page is too large */
async function* partsOf(
  read: (page: number, size: number) => Promise<Answer | undefined>,
  page: number,
  fault: (code: string) => PullwrightError,
) {
  const whole = await read(page, PAGE_SIZE);
  if (whole !== undefined) {
    yield { answer: whole, size: PAGE_SIZE };
    return;
  }
  let leftOut = 0;
  for (let at = 1; at <= PAGE_SIZE; at += 1) {
    const answer = await read((page - 1) * PAGE_SIZE + at, 1);
    leftOut = answer === undefined ? leftOut + 1 : 0;
    if (leftOut > MOST_LEFT_OUT) throw fault('documents that are too large');
    yield { answer, size: 1 };
  }
}

const listPage = z.object({ items: z.array(z.unknown()), total: z.number().optional().catch(undefined) });

/**
 * Whether a 404 means that the cluster does not exist. A 404 for an unknown path (a wrong base URL) or from a proxy does not.
 * API 1.0.2 has no such codes, but its error bodies have `kind: Error`.
 */
function isGone({ status, code, body }: Answer): boolean {
  if (status !== 404) return false;
  if (code.startsWith('HYPERFLEET-NTF-')) return code !== 'HYPERFLEET-NTF-000';
  return recordOf(body)['kind'] === 'Error';
}
