/** A page of a list as Google's APIs give them: `pageSize`, `pageToken`, `nextPageToken`. */
import { invalid } from './refusal.ts';

const DEFAULT_PAGE = 25_000;

export function paged<T>(
  all: readonly T[],
  query: URLSearchParams,
): { page: readonly T[]; nextPageToken: { nextPageToken?: string } } {
  const size = Number(query.get('pageSize') ?? 0) || DEFAULT_PAGE;
  const token = query.get('pageToken') ?? '';
  if (!/^(p\d+)?$/.test(token)) throw invalid('The page token is not valid.');
  const from = token === '' ? 0 : Number(token.slice(1));
  const end = from + size;
  return { page: all.slice(from, end), nextPageToken: end < all.length ? { nextPageToken: `p${end}` } : {} };
}
