/**
 * The HyperFleet API, as far as the adapter and Sentinel use it. Understands the current API (PUT of statuses) and the one of the
 * requirement (POST). Response bodies stay here: they hold pull secrets.
 */
import { PullwrightError } from '../rules/errors.ts';
import { type Redacted, reveal } from '../rules/redacted.ts';
import { type AdapterStatus, type Cluster, readAdapterStatus, readCluster } from './cluster.ts';
import type { StatusBody } from './status-report.ts';

export interface HyperfleetOptions {
  /** Without path. */
  readonly baseUrl: string;
  /** Absent: no authentication. */
  readonly token?: () => Promise<Redacted<string>>;
  /** `PUT`, `POST`, or find out. @default {'auto'} */
  readonly statusMethod?: 'PUT' | 'POST' | 'auto';
  readonly userAgent: string;
  /** @default {10000} */
  readonly timeoutMs?: number;
  /** Tries of one call. @default {4} */
  readonly tries?: number;
  readonly pause: (ms: number) => Promise<void>;
  readonly fetch?: typeof fetch;
}

interface Answer {
  readonly status: number;
  readonly code: string;
  readonly body: unknown;
}

const PREFIX = '/api/hyperfleet/v1';
const PAGE_SIZE = 100;
const MAX_BODY_BYTES = 32 * 1024 * 1024;

export class HyperfleetApi {
  readonly #options: HyperfleetOptions;
  #method: 'PUT' | 'POST';

  constructor(options: HyperfleetOptions) {
    this.#options = options;
    this.#method = options.statusMethod === 'POST' ? 'POST' : 'PUT';
  }

  /** The cluster, or undefined when it has gone. @throws PullwrightError */
  async cluster(id: string): Promise<Cluster | undefined> {
    const path = `${PREFIX}/clusters/${encodeURIComponent(id)}`;
    const answer = await this.#call('GET', path);
    if (isGone(answer)) return undefined;
    if (answer.status !== 200) throw refused('read cluster', id, answer);
    const read = readCluster(answer.body);
    if (read.ok) return read.value;
    throw new PullwrightError(`Cannot read cluster "${id}": ${read.reason}`, { code: 'ClusterFetchFailed' });
  }

  /** Every adapter's report, over all pages; empty when the cluster has gone. */
  async statuses(id: string): Promise<readonly AdapterStatus[]> {
    const path = `${PREFIX}/clusters/${encodeURIComponent(id)}/statuses`;
    const items = await this.#pages(path, 'read the statuses of', id, {});
    return items.map(readAdapterStatus).filter((status) => status !== undefined);
  }

  /** Every cluster, over all pages; each once. */
  async clusters(search: string): Promise<readonly Cluster[]> {
    const items = await this.#pages(
      `${PREFIX}/clusters`,
      'list',
      'clusters',
      search === '' ? {} : { search },
    );
    const byId = new Map<string, Cluster>();
    for (const item of items) {
      const read = readCluster(item);
      if (read.ok) byId.set(read.value.id, read.value);
    }
    return [...byId.values()];
  }

  /** Sends a report. `discarded`: the API had a newer one; `gone`: there is no such cluster any more. */
  async report(id: string, body: StatusBody): Promise<'stored' | 'discarded' | 'gone'> {
    const path = `${PREFIX}/clusters/${encodeURIComponent(id)}/statuses`;
    let answer = await this.#call(this.#method, path, body);
    if (answer.status === 405 && (this.#options.statusMethod ?? 'auto') === 'auto') {
      this.#method = this.#method === 'PUT' ? 'POST' : 'PUT';
      answer = await this.#call(this.#method, path, body);
    }
    if (answer.status === 204) return 'discarded';
    if (answer.status >= 200 && answer.status < 300) return 'stored';
    if (isGone(answer)) return 'gone';
    throw refused('report the status of cluster', id, answer);
  }

  async #pages(
    path: string,
    verb: string,
    subject: string,
    query: Readonly<Record<string, string>>,
  ): Promise<readonly unknown[]> {
    const items: unknown[] = [];
    for (let page = 1; page <= 100_000; page += 1) {
      // The names of both generations of the API; what one does not know, it ignores.
      const search = new URLSearchParams({
        page: String(page),
        pageSize: String(PAGE_SIZE),
        ...query,
        size: String(PAGE_SIZE),
      });
      search.sort();
      const answer = await this.#call('GET', `${path}?${search.toString()}`);
      if (isGone(answer)) return items;
      if (answer.status !== 200) throw refused(verb, subject, answer);
      const { items: found, total } = (answer.body ?? {}) as {
        readonly items?: unknown;
        readonly total?: unknown;
      };
      if (!Array.isArray(found)) throw refused(verb, subject, { ...answer, code: 'no list' });
      items.push(...(found as unknown[]));
      if (
        found.length === 0 ||
        (typeof total === 'number' ? items.length >= total : found.length < PAGE_SIZE)
      )
        break;
    }
    return items;
  }

  /** Tries again what may come right: no answer, 408, 429, 5xx. */
  async #call(method: string, path: string, body?: unknown): Promise<Answer> {
    const tries = this.#options.tries ?? 4;
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#once(method, path, body);
      if (![0, 408, 429].includes(answer.status) && answer.status < 500) return answer;
      if (attempt >= tries) throw refused(method.toLowerCase(), path.split('?')[0] ?? path, answer);
      await this.#options.pause(Math.min(250 * 2 ** (attempt - 1), 4000));
    }
  }

  /** Status 0: no answer, or none of this API. */
  async #once(method: string, path: string, body?: unknown): Promise<Answer> {
    const { baseUrl, token, userAgent } = this.#options;
    try {
      const bearer = token === undefined ? {} : { authorization: `Bearer ${reveal(await token())}` };
      const response = await (this.#options.fetch ?? fetch)(`${baseUrl}${path}`, {
        method,
        headers: {
          accept: 'application/json, application/problem+json',
          'user-agent': userAgent,
          ...bearer,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(this.#options.timeoutMs ?? 10_000),
        redirect: 'error',
      });
      return answerOf(response.status, await response.text());
    } catch (error) {
      if (error instanceof PullwrightError) throw error;
      const late = error instanceof Error && error.name === 'TimeoutError';
      return { status: 0, code: late ? 'no answer in time' : 'no connection', body: undefined };
    }
  }
}

/** A page of a proxy with status 200 is no answer of this API. */
function answerOf(status: number, text: string): Answer {
  if (text.length > MAX_BODY_BYTES) return { status: 0, code: 'answer too large', body: undefined };
  const body = parse(text);
  if (status === 200 && body === undefined) return { status: 0, code: 'no JSON', body };
  const code = (body as { readonly code?: unknown } | undefined)?.code;
  return { status, code: typeof code === 'string' ? code.slice(0, 64) : '', body };
}

function parse(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A 404 for an unknown path is a wrong base URL, not a missing cluster; a 404 of a proxy says nothing. */
function isGone(answer: Answer): boolean {
  return (
    answer.status === 404 && answer.code.startsWith('HYPERFLEET-NTF-') && answer.code !== 'HYPERFLEET-NTF-000'
  );
}

function refused(verb: string, subject: string, answer: Answer): PullwrightError {
  const said = [answer.status === 0 ? undefined : `HTTP ${answer.status}`, answer.code]
    .filter(Boolean)
    .join(' ');
  const hints: Readonly<Record<number, string>> = {
    401: 'Look at the token file',
    403: 'Give the identity of the adapter the right to write statuses',
    404: 'Look at the base URL of the API',
  };
  const hint = hints[answer.status];
  return new PullwrightError(`Cannot ${verb} "${subject}": the HyperFleet API answered ${said}`, {
    code: answer.status === 401 || answer.status === 403 ? 'ApiAccessDenied' : 'ApiUnavailable',
    ...(hint === undefined ? {} : { hint }),
  });
}
