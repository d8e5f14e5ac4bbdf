/** Access to values of unknown shape, such as parsed JSON or YAML. */

/** Whether a value is a map: an object, but not null or a list. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value with the keys of all its maps sorted, like Go's encoding/json. */
export function withSortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedKeys);
  if (!isRecord(value)) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, withSortedKeys(value[key])]));
}

/** The value as a map; empty for any other type. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** The map with each value changed. */
export function mapValues<V, R>(
  map: Readonly<Record<string, V>>,
  change: (value: V, key: string) => R,
): Record<string, R> {
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [key, change(value, key)]));
}

/** Drops undefined fields. */
export function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** The items, only the first of each key. */
export function distinctBy<T>(items: Iterable<T>, keyOf: (item: T) => unknown): T[] {
  const alike = Map.groupBy(items, (item) => keyOf(item)).values();
  return alike.flatMap((same) => same.slice(0, 1)).toArray();
}

/** The items of a list as maps; empty if not a list. */
export function recordsIn(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map(recordOf) : [];
}

/** The strings in a list; empty if not a list. */
export function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** The string values of a map; empty if not a map. */
export function stringsIn(value: unknown): Readonly<Record<string, string>> {
  const texts = Object.entries(recordOf(value)).filter((entry) => typeof entry[1] === 'string');
  return Object.fromEntries(texts) as Record<string, string>;
}

/** The value as a string; empty for any other type. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Parses JSON; undefined if invalid. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A scalar as text; for other values their type. `String()` would call a map's `toString`, which may be any value, and throw. */
export function scalarText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean')
    return String(value);
  if (Array.isArray(value)) return 'a list';
  return value === null || value === undefined ? `${value}` : 'a map';
}

/** Memoizes `make` by key, as long as the key object exists. */
export function oncePer<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const made = new WeakMap<K, { readonly value: V }>();
  return (key) => {
    const known = made.get(key);
    if (known !== undefined) return known.value;
    const value = make(key);
    made.set(key, { value });
    return value;
  };
}

/** The value at `a.b.c`; undefined if the path does not exist. */
export function valueAt(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce((at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined), value);
}

/** Sets `key` as the newest entry; evicts the oldest one beyond `most`. */
export function remember<V>(map: Map<string, V>, key: string, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}
