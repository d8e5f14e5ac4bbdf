/** Permalinks: the address holds the view, after its "#". */

/** What is shown. */
export interface PageRoute {
  readonly cluster?: string;
  readonly pull?: string;
  readonly search?: string;
  readonly part?: string;
}

/** What the address names. */
export function currentRoute(): PageRoute {
  const given = new URLSearchParams(location.hash.slice(1));
  const route: Record<string, string> = {};
  for (const part of ['cluster', 'pull', 'search', 'part']) {
    const value = given.get(part);
    if (value !== null && value !== '') route[part] = value;
  }
  return route;
}

/** The address of a route. */
export function linkTo(route: PageRoute): string {
  const given = new URLSearchParams();
  for (const [part, value] of Object.entries(route)) if (value !== undefined) given.set(part, String(value));
  return `#${given.toString()}`;
}
