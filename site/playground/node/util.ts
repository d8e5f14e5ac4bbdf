/** The part of `node:util` that the commands of the playground use. `parseArgs` is the package of the Node.js project. */
export { parseArgs } from '@pkgjs/parseargs';

/** Equal by value: plain objects, lists, maps, sets, dates, bytes and what has no parts. */
export function isDeepStrictEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  return sameEntries(a, b) ?? sameFields(a, b);
}

/** Compares objects whose content is not in fields; undefined for any other object. */
function sameEntries(a: object, b: object): boolean | undefined {
  if (a instanceof Date && b instanceof Date) return a.getTime() === b.getTime();
  if (a instanceof Map && b instanceof Map)
    return (
      a.size === b.size && [...a].every(([key, value]) => b.has(key) && isDeepStrictEqual(value, b.get(key)))
    );
  if (a instanceof Set && b instanceof Set)
    return (
      a.size === b.size && [...a].every((value) => [...b].some((other) => isDeepStrictEqual(value, other)))
    );
  if (Array.isArray(a) && Array.isArray(b) && a.length !== b.length) return false;
  return undefined;
}

function sameFields(a: object, b: object): boolean {
  const mine = a as Readonly<Record<string, unknown>>;
  const other = b as Readonly<Record<string, unknown>>;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && isDeepStrictEqual(mine[key], other[key]))
  );
}

/** Sequences of terminals, as Node takes them out. */
export function stripVTControlCharacters(text: string): string {
  return text.replace(/\p{Cc}\][^\p{Cc}]*\p{Cc}|\p{Cc}\[[0-9;]*[A-Za-z]/gu, '');
}
