/**
 * The HyperFleet API, as far as the adapter and Sentinel use it. Understands the current API (PUT of statuses) and the one of the
 * requirement (POST).
 */

import { type BackOff, backOffMs } from '../core/back-off.ts';
import { PullwrightError } from '../core/errors.ts';
import { jsonOf, recordOf, textOf } from '../core/record.ts';
import { type Redacted, reveal } from '../core/redacted.ts';
import { type HttpClient, isPassingStatus, retry, retryAfterMs } from '../http/client.ts';
import { HttpError } from '../http/http-error.ts';
import type { WholeAnswer } from '../http/request.ts';
import { type AdapterStatus, adapterStatuses, clusterDocument, type HyperfleetCluster } from './cluster.ts';
import { CLUSTER_ID } from './places.ts';
import type { StatusBody } from './status-report.ts';

// One call of the HyperFleet API: its tries, its pauses and its limits. Response bodies stay here and in `hyperfleet-api.ts`: they
// hold pull secrets.

export interface HyperfleetOptions {
  /** Without path. */
  readonly baseUrl: string;
  /** Absent: no authentication. Read again for every try. */
  readonly token?: () => Promise<Redacted<string>>;
  readonly userAgent: string;
  /** @default {10000} */
  readonly timeoutMs?: number;
  /** Tries of one call. @default {4} */
  readonly tries?: number;
  /** Rejects when the process ends. */
  readonly pause: (ms: number) => Promise<void>;
  readonly http: HttpClient;
  /** In [0, 1). */
  readonly random?: () => number;
  /** One answer: status, or 0 where there was none. */
  readonly onAnswer?: (seen: { readonly method: string; readonly status: number }) => void;
  /** A document of a list that is too large by itself: the list goes on without it. `position` counts from 0. */
  readonly onLeftOut?: (seen: { readonly subject: string; readonly position: number }) => void;
}

/** An answer, or, with status 0, why there was none of this API. */
export interface Answer {
  readonly status: number;
  /** Code of the API, or of what went wrong. */
  readonly code: string;
  readonly body: unknown;
  readonly retryAfterMs?: number | undefined;
}

const MOST_BYTES = 32 * 1024 * 1024;
const BACK_OFF: BackOff = { firstMs: 250, maxMs: 4000 };
/** The longest pause that a server may request; longer ones requeue the message at the broker. */
const LONGEST_WAIT_MS = 30_000;

/** Retries no answer, 408, 429 and 5xx, as late as the server requests. @throws PullwrightError */
export async function callHyperfleet(
  options: HyperfleetOptions,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const attempt = async (): Promise<Answer> => {
    const answer = await once(options, method, path, body);
    options.onAnswer?.({ method, status: answer.status });
    return answer;
  };
  const answer = await retry(attempt, {
    tries: options.tries ?? 4,
    waitMs: (round) => backOffMs(BACK_OFF, round, (options.random ?? Math.random)()),
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
  return status === 0 || status >= 500 || isPassingStatus(status);
}

async function once(
  options: HyperfleetOptions,
  method: string,
  path: string,
  body: unknown,
): Promise<Answer> {
  const { baseUrl, token, userAgent, http } = options;
  const bearer = token === undefined ? {} : { authorization: `Bearer ${reveal(await token())}` };
  const request = {
    method,
    url: `${baseUrl}${path}`,
    headers: {
      accept: 'application/json, application/problem+json',
      'user-agent': userAgent,
      ...bearer,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    timeoutMs: options.timeoutMs ?? 10_000,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
  try {
    return answerOf(await http.ask(request, MOST_BYTES));
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    return { status: 0, code: FAULTS[error.failure] ?? noConnection(error), body: undefined };
  }
}

/** A proxy or login page is not an answer of this API, with any status. */
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
  AnswerTooLarge: 'an answer that is too large',
  Timeout: 'no answer in time',
};

function isTooLarge({ status, code }: Answer): boolean {
  return status === 0 && code === FAULTS['AnswerTooLarge'];
}

function noConnection({ code }: HttpError): string {
  return code === undefined ? 'no connection' : `no connection (${code})`;
}

const HINTS: Readonly<Record<number, string>> = {
  401: 'Look at the token file',
  403: 'Give the identity of the adapter the right to write statuses',
  404: 'Look at the base URL of the API',
};

/**
 * An answer as an error. `terminal`: about this one cluster, and the same at every try; else the API, the way to it or the
 * identity is at fault, and every cluster is concerned.
 */
export function refused(verb: string, subject: string, answer: Answer): PullwrightError {
  const { status } = answer;
  const said = [status === 0 ? undefined : `HTTP ${status}`, answer.code].filter(Boolean).join(' ');
  const hint = status >= 300 && status < 400 ? HINTS[404] : HINTS[status];
  const denied = status === 401 || status === 403;
  const own = status >= 400 && status < 500 && ![401, 403, 404, 405, 408, 429].includes(status);
  return new PullwrightError(`Cannot ${verb} "${subject}": the HyperFleet API answered ${said}`, {
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
/** An API that gives so many documents in turn that are too large is at fault itself. */
const MOST_LEFT_OUT = 10;
/** The API takes no higher number of a page. */
const MOST_PAGES = 100_000;
/** How often a list that changes while it is read is read. */
const MAX_PASSES = 3;

export class HyperfleetApi {
  readonly #options: HyperfleetOptions;
  /** The current API has `PUT`, the one of the requirement `POST`: found out by the first report. */
  #method: 'PUT' | 'POST' = 'PUT';

  constructor(options: HyperfleetOptions) {
    this.#options = options;
  }

  /** The cluster, or undefined when it has gone. @throws PullwrightError */
  async cluster(id: string): Promise<HyperfleetCluster | undefined> {
    const answer = await callHyperfleet(this.#options, 'GET', `${CLUSTERS}/${encodeURIComponent(id)}`);
    if (isGone(answer)) return undefined;
    if (answer.status !== 200) throw refused('read cluster', id, answer);
    const { data, error } = clusterDocument.safeParse(answer.body);
    if (data?.id === id) return data;
    const problem = error
      ? `the cluster document ${error.issues[0]?.message}`
      : 'the API answered with another cluster';
    throw new PullwrightError(`Cannot read cluster "${id}": ${problem}`, {
      code: 'ClusterFetchFailed',
      retryPolicy: 'terminal',
    });
  }

  /** Every adapter's report, over all pages; empty when the cluster has gone. @throws PullwrightError */
  async statuses(id: string): Promise<readonly AdapterStatus[]> {
    const found = new Map<string, AdapterStatus>();
    const path = `${CLUSTERS}/${encodeURIComponent(id)}/statuses`;
    for await (const items of this.#pages(path, ['read the statuses of', id], {})) {
      for (const status of adapterStatuses.parse(items)) found.set(status.adapter, status);
    }
    return [...found.values()];
  }

  /**
   * Every cluster, each once, page by page: documents hold pull secrets of up to 64 KiB, so they are not gathered. Clusters that come
   * and go move the others from page to page; a list whose length changes is therefore read again, for what was skipped.
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
        yield clustersIn(items).filter(({ id }) => seen.size < seen.add(id).size);
      }
      if (lengths.size < 2) return;
    }
  }

  /** Sends a report. `discarded`: the API had a newer one; `gone`: the cluster no longer exists. @throws PullwrightError */
  async report(id: string, body: StatusBody): Promise<'stored' | 'discarded' | 'gone'> {
    const path = `${CLUSTERS}/${encodeURIComponent(id)}/statuses`;
    let method = this.#method;
    let answer = await callHyperfleet(this.#options, method, path, body);
    if (answer.status === 405) {
      method = method === 'PUT' ? 'POST' : 'PUT';
      answer = await callHyperfleet(this.#options, method, path, body);
      // Only a method that the API knows is worth remembering.
      if (answer.status !== 405) this.#method = method;
    }
    if (answer.status === 204) return 'discarded';
    if (answer.status >= 200 && answer.status < 300) return 'stored';
    if (isGone(answer)) return 'gone';
    throw refused('report the status of cluster', id, answer);
  }

  /**
   * A page that is too large is read again document by document; a document that is too large is skipped.
   *
   * @param lengths takes what each page says that the whole list has
   */
  async *#pages(
    path: string,
    [verb, subject]: readonly [string, string],
    query: Readonly<Record<string, string>>,
    lengths: Set<number> = new Set(),
  ): AsyncGenerator<readonly unknown[], void, undefined> {
    const fault = (code: string): PullwrightError =>
      refused(verb, subject, { status: 0, code, body: undefined });
    let [count, before] = [0, ''];
    for (let page = 1; page <= MOST_PAGES; page += 1) {
      for await (const { answer, size } of this.#parts(path, query, page, fault)) {
        if (answer === 'too large') {
          this.#options.onLeftOut?.({ subject, position: count });
          count += 1;
          continue;
        }
        if (isGone(answer)) return;
        const { items, total } = listIn(answer, [verb, subject]);
        // The API, or a cache before it, ignores the page number. A single document may repeat.
        const names = namesOf(items);
        if (items.length > 1 && names === before) throw fault('the same page again, whichever was requested');
        yield items;
        [count, before] = [count + items.length, names];
        if (total !== undefined) lengths.add(total);
        if (items.length === 0 || (total === undefined ? items.length < size : count >= total)) return;
      }
    }
    throw fault('one page after another, without an end');
  }

  /** A page; or, where it is too large, each of its documents. */
  async *#parts(
    path: string,
    query: Readonly<Record<string, string>>,
    page: number,
    fault: (code: string) => PullwrightError,
  ): AsyncGenerator<{ readonly answer: Answer | 'too large'; readonly size: number }, void, undefined> {
    const whole = await this.#page(path, query, page, PAGE_SIZE);
    if (whole !== 'too large') {
      yield { answer: whole, size: PAGE_SIZE };
      return;
    }
    let leftOut = 0;
    for (let at = 1; at <= PAGE_SIZE; at += 1) {
      const answer = await this.#page(path, query, (page - 1) * PAGE_SIZE + at, 1);
      leftOut = answer === 'too large' ? leftOut + 1 : 0;
      if (leftOut > MOST_LEFT_OUT) throw fault('documents that are too large');
      yield { answer, size: 1 };
    }
  }

  async #page(
    path: string,
    query: Readonly<Record<string, string>>,
    page: number,
    size: number,
  ): Promise<Answer | 'too large'> {
    // The names of both generations of the API; what one does not know, it ignores.
    const [number, length] = [String(page), String(size)];
    const search = new URLSearchParams({ page: number, pageSize: length, ...query, size: length });
    search.sort();
    return callHyperfleet(this.#options, 'GET', `${path}?${search.toString()}`).catch((error: unknown) => {
      if (error instanceof PullwrightError && error.code === 'AnswerTooLarge') return 'too large' as const;
      throw error;
    });
  }
}

/** Clusters have an `id`, reports an `adapter`. */
function namesOf(items: readonly unknown[]): string {
  return JSON.stringify(items.map(recordOf).map(({ id, adapter }) => [id, adapter]));
}

/** @throws PullwrightError when it is not a page of a list */
function listIn(
  answer: Answer,
  [verb, subject]: readonly [string, string],
): { readonly items: readonly unknown[]; readonly total: number | undefined } {
  if (answer.status !== 200) throw refused(verb, subject, answer);
  const { items, total } = recordOf(answer.body);
  if (!Array.isArray(items)) throw refused(verb, subject, { ...answer, code: 'without a list' });
  return { items: items as unknown[], total: typeof total === 'number' ? total : undefined };
}

/** Those that can be read, and whose identifier fits into a path and a name. */
function clustersIn(items: readonly unknown[]): readonly HyperfleetCluster[] {
  const read = items.map((item) => clusterDocument.safeParse(item));
  return read.flatMap(({ data }) => (data !== undefined && CLUSTER_ID.test(data.id) ? [data] : []));
}

/**
 * A 404 for an unknown path is a wrong base URL, not a missing cluster; a 404 of a proxy says nothing. API 1.0.2 has no codes of this
 * form, but says what the body is.
 */
function isGone({ status, code, body }: Answer): boolean {
  if (status !== 404) return false;
  if (code.startsWith('HYPERFLEET-NTF-')) return code !== 'HYPERFLEET-NTF-000';
  return recordOf(body)['kind'] === 'Error';
}
