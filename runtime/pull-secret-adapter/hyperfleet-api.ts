/**
 * The HyperFleet API, as far as the adapter and Sentinel use it. Understands the current API (PUT of statuses) and the one of the
 * requirement (POST).
 */
import { PullwrightError } from '../rules/errors.ts';
import { recordOf } from '../rules/record.ts';
import type { StatusBody } from './adapter/status-report.ts';
import { type AdapterStatus, type HyperfleetCluster, readAdapterStatus, readCluster } from './cluster.ts';
import { CLUSTER_ID } from './cluster-event.ts';
import { type Answer, callHyperfleet, type HyperfleetOptions, refused } from './hyperfleet-http.ts';

export type { HyperfleetOptions } from './hyperfleet-http.ts';

const CLUSTERS = '/api/hyperfleet/v1/clusters';
const PAGE_SIZE = 100;
/** An API that gives so many documents in turn that are too large is at fault itself. */
const MOST_LEFT_OUT = 10;
const TOO_LARGE: Answer = { status: 0, code: 'documents that are too large', body: undefined };
/** An API, or a cache before it, that does not look at the number of the page would be asked for ever. */
const SAME_PAGE: Answer = {
  status: 0,
  code: 'the same page again, whichever was asked for',
  body: undefined,
};
const WITHOUT_END: Answer = { status: 0, code: 'one page after another, without an end', body: undefined };
/** Pages of ten million clusters. */
const MOST_REQUESTS = 100_000;
/** How often a list that changes while it is read is read. */
const MAX_PASSES = 3;

export class HyperfleetApi {
  readonly #options: HyperfleetOptions;
  #method: 'PUT' | 'POST';

  constructor(options: HyperfleetOptions) {
    this.#options = options;
    this.#method = options.statusMethod === 'POST' ? 'POST' : 'PUT';
  }

  /** The cluster, or undefined when it has gone. @throws PullwrightError */
  async cluster(id: string): Promise<HyperfleetCluster | undefined> {
    const answer = await callHyperfleet(this.#options, 'GET', `${CLUSTERS}/${encodeURIComponent(id)}`);
    if (isGone(answer)) return undefined;
    if (answer.status !== 200) throw refused('read cluster', id, answer);
    const read = readCluster(answer.body);
    if (read.ok && read.value.id === id) return read.value;
    const problem = read.ok ? 'the API answered with another cluster' : read.reason;
    throw new PullwrightError(`Cannot read cluster "${id}": ${problem}`, {
      code: 'ClusterFetchFailed',
      disposition: 'terminal',
    });
  }

  /** Every adapter's report, over all pages; empty when the cluster has gone. @throws PullwrightError */
  async statuses(id: string): Promise<readonly AdapterStatus[]> {
    const found = new Map<string, AdapterStatus>();
    const path = `${CLUSTERS}/${encodeURIComponent(id)}/statuses`;
    for await (const items of this.#pages(path, ['read the statuses of', id], {})) {
      for (const status of items.map(readAdapterStatus)) if (status) found.set(status.adapter, status);
    }
    return [...found.values()];
  }

  /**
   * Every cluster, each once, page by page: documents hold pull secrets of up to 64 KiB, so they are not gathered. Clusters that come
   * and go move the others from page to page; a list whose length changes is therefore read again, for what was skipped.
   *
   * @throws PullwrightError
   */
  async *clusters(search: string): AsyncGenerator<HyperfleetCluster, void, undefined> {
    const seen = new Set<string>();
    const lengths = new Set<number>();
    for (let pass = 1; pass <= MAX_PASSES; pass += 1) {
      lengths.clear();
      const query = search === '' ? {} : { search };
      for await (const items of this.#pages(CLUSTERS, ['list', 'clusters'], query, lengths)) {
        yield* unseen(items, seen);
      }
      if (lengths.size < 2) return;
    }
  }

  /** Sends a report. `discarded`: the API had a newer one; `gone`: there is no such cluster any more. @throws PullwrightError */
  async report(id: string, body: StatusBody): Promise<'stored' | 'discarded' | 'gone'> {
    const path = `${CLUSTERS}/${encodeURIComponent(id)}/statuses`;
    let method = this.#method;
    let answer = await callHyperfleet(this.#options, method, path, body);
    if (answer.status === 405 && (this.#options.statusMethod ?? 'auto') === 'auto') {
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
   * A page that is too large is read again in parts, down to single documents; one that is too large by itself is left out, and
   * the pages after it are read all the same.
   *
   * @param lengths takes what each page says that the whole list has
   */
  async *#pages(
    path: string,
    [verb, subject]: readonly [string, string],
    query: Readonly<Record<string, string>>,
    lengths: Set<number> = new Set(),
  ): AsyncGenerator<readonly unknown[], void, undefined> {
    const place = { from: 0, size: PAGE_SIZE, count: 0, leftOut: 0 };
    const comesAgain = pageThatComesAgain();
    for (let requests = 0; requests < MOST_REQUESTS; requests += 1) {
      // A page begins at a multiple of its size.
      while (place.from % place.size !== 0) place.size = smaller(place.size);
      const answer = await this.#page(path, query, place);
      if (answer === 'too large') {
        this.#passOver(place, subject);
        if (place.leftOut > MOST_LEFT_OUT) throw refused(verb, subject, TOO_LARGE);
        continue;
      }
      if (isGone(answer)) return;
      const { items, total } = listIn(answer, [verb, subject]);
      if (comesAgain(items)) throw refused(verb, subject, SAME_PAGE);
      yield items;
      const isShort = items.length < place.size;
      readOn(place, items.length);
      if (total !== undefined) lengths.add(total);
      if (items.length === 0 || (total === undefined ? isShort : place.count >= total)) return;
    }
    throw refused(verb, subject, WITHOUT_END);
  }

  /** A smaller page from the same place; beyond the document when it is alone. */
  #passOver(place: Place, subject: string): void {
    if (place.size > 1) place.size = smaller(place.size);
    else {
      this.#options.onLeftOut?.({ subject, position: place.from });
      place.leftOut += 1;
      place.count += 1;
      place.from += 1;
    }
  }

  async #page(
    path: string,
    query: Readonly<Record<string, string>>,
    { from, size }: Place,
  ): Promise<Answer | 'too large'> {
    // The names of both generations of the API; what one does not know, it ignores.
    const page = String(from / size + 1);
    const search = new URLSearchParams({ page, pageSize: String(size), ...query, size: String(size) });
    search.sort();
    return callHyperfleet(this.#options, 'GET', `${path}?${search.toString()}`).catch((error: unknown) => {
      if (error instanceof PullwrightError && error.code === 'AnswerTooLarge') return 'too large' as const;
      throw error;
    });
  }
}

/** @throws PullwrightError for what is no page of a list */
function listIn(
  answer: Answer,
  [verb, subject]: readonly [string, string],
): { readonly items: readonly unknown[]; readonly total: number | undefined } {
  if (answer.status !== 200) throw refused(verb, subject, answer);
  const { items, total } = (answer.body ?? {}) as { readonly items?: unknown; readonly total?: unknown };
  if (!Array.isArray(items)) throw refused(verb, subject, { ...answer, code: 'without a list' });
  return { items: items as unknown[], total: typeof total === 'number' ? total : undefined };
}

/**
 * Whether a page is the one before it. One of a single document comes again when another is put before it; one of several does only where the
 * number of the page is ignored.
 */
function pageThatComesAgain(): (items: readonly unknown[]) => boolean {
  let before = '';
  return (items) => {
    // Clusters have an `id`, reports an `adapter`.
    const names = JSON.stringify(items.map(recordOf).map(({ id, adapter }) => [id, adapter]));
    const isSame = items.length > 1 && names === before;
    before = names;
    return isSame;
  };
}

/** Where a list is read. */
interface Place {
  /** Documents before the page. */
  from: number;
  size: number;
  /** Documents that were seen or left out. */
  count: number;
  /** Documents that were left out since the last page that could be read. */
  leftOut: number;
}

/** Sizes of a page, each a part of the one before. */
const SIZES: readonly number[] = [PAGE_SIZE, 50, 25, 5, 1];

function smaller(size: number): number {
  return SIZES[SIZES.indexOf(size) + 1] ?? 1;
}

/** Beyond a page that could be read, and back to whole pages by one step for each. */
function readOn(place: Place, items: number): void {
  place.from += place.size;
  place.count += items;
  place.leftOut = 0;
  const larger = SIZES[SIZES.indexOf(place.size) - 1] ?? place.size;
  if (place.from % larger === 0) place.size = larger;
}

/** Those that can be read, whose identifier fits into a path and a name, and that were not there before. */
function* unseen(
  items: readonly unknown[],
  seen: Set<string>,
): Generator<HyperfleetCluster, void, undefined> {
  for (const read of items.map(readCluster)) {
    if (!read.ok || !CLUSTER_ID.test(read.value.id) || seen.has(read.value.id)) continue;
    seen.add(read.value.id);
    yield read.value;
  }
}

/**
 * A 404 for an unknown path is a wrong base URL, not a missing cluster; a 404 of a proxy says nothing. API 1.0.2 has no codes of this
 * form, but says what the body is.
 */
function isGone({ status, code, body }: Answer): boolean {
  if (status !== 404) return false;
  if (code.startsWith('HYPERFLEET-NTF-')) return code !== 'HYPERFLEET-NTF-000';
  return (body as { readonly kind?: unknown } | null | undefined)?.kind === 'Error';
}
