/** The value under `key`, never what a plain object inherits: a label may be called `constructor`. */
export function own(map: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}
