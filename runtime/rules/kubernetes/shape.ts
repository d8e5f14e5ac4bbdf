/**
 * Whether a value has the fields and types that its kind declares: what the API server says under strict field validation, for
 * manifests that no API server has looked at. A field that is spelled wrong must not count as one that was left out.
 *
 * Source of the rule: `fieldValidation: Strict` of kube-apiserver over a structural schema. A null counts as a field that was left
 * out, as the API server drops it. In a map it would be one label less to look at, and is refused, as the definitions of our kinds do.
 */

/** What a value may be. `fields` refuses every other one, `map` takes any key; a null behind one only where it is `nullable`. */
export type Shape =
  | 'string'
  | 'boolean'
  | 'integer'
  | 'any'
  | { readonly list: Shape }
  | { readonly map: Shape; readonly nullable?: true }
  | { readonly fields: Readonly<Record<string, Shape>> };

/** metav1.LabelSelector. What an operator may be, the reader of selectors says. */
export const SELECTOR_SHAPE: Shape = {
  fields: {
    matchLabels: { map: 'string' },
    matchExpressions: {
      list: { fields: { key: 'string', operator: 'any', values: { list: 'string' } } },
    },
  },
};

/**
 * Every unknown field and every wrong type in `value`, each with its path. Linear in the size of the value.
 *
 * @example
 * ```ts
 * import { SELECTOR_SHAPE, shapeProblems } from './shape.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(shapeProblems({ matchlabels: {} }, SELECTOR_SHAPE, 'spec.selector'), [
 *   'spec.selector.matchlabels: unknown field; must be one of "matchLabels", "matchExpressions"',
 * ]);
 * assert.deepEqual(shapeProblems('true', 'boolean', 'spec.suspend'), [
 *   'spec.suspend: invalid value "true": must be a boolean',
 * ]);
 * ```
 */
export function shapeProblems(value: unknown, shape: Shape, path: string): readonly string[] {
  if (value === undefined || value === null || shape === 'any') return [];
  if (typeof shape === 'string') return leafProblems(value, shape, path);
  if ('list' in shape) {
    if (!Array.isArray(value)) return [wrongType(value, path, 'a list')];
    return (value as readonly unknown[]).flatMap((item, at) =>
      item === null
        ? [`${path}[${at}]: must not be null`]
        : shapeProblems(item, shape.list, `${path}[${at}]`),
    );
  }
  if (typeof value !== 'object' || Array.isArray(value)) return [wrongType(value, path, 'an object')];
  const entries = Object.entries(value);
  if ('map' in shape)
    return entries.flatMap(([key, item]) => mapProblems(item, shape, `${path}[${shownText(key)}]`));
  return entries.flatMap(([key, item]) => fieldProblems(key, item, shape.fields, path));
}

function mapProblems(
  item: unknown,
  { map, nullable }: Extract<Shape, { map: Shape }>,
  path: string,
): readonly string[] {
  return item === null && nullable !== true ? [`${path}: must not be null`] : shapeProblems(item, map, path);
}

function fieldProblems(
  key: string,
  item: unknown,
  fields: Readonly<Record<string, Shape>>,
  path: string,
): readonly string[] {
  const shape = Object.hasOwn(fields, key) ? fields[key] : undefined;
  const dotted = path === '' ? key : `${path}.${key}`;
  const name = /^[\w-]{1,63}$/.test(key) ? dotted : `${path}[${shownText(key)}]`;
  if (shape !== undefined) return shapeProblems(item, shape, name);
  const known = Object.keys(fields).map((field) => `"${field}"`);
  return [`${name}: unknown field; must be one of ${known.join(', ')}`];
}

function leafProblems(
  value: unknown,
  shape: 'string' | 'boolean' | 'integer',
  path: string,
): readonly string[] {
  if (shape === 'integer') return Number.isInteger(value) ? [] : [wrongType(value, path, 'an integer')];
  return typeof value === shape ? [] : [wrongType(value, path, `a ${shape}`)];
}

function wrongType(value: unknown, path: string, wanted: string): string {
  return `${path}: invalid value ${shownValue(value)}: must be ${wanted}`;
}

function shownValue(value: unknown): string {
  if (typeof value === 'string') return shownText(value);
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return Array.isArray(value) ? 'of type list' : 'of type object';
}

function shownText(text: string): string {
  return JSON.stringify(text.slice(0, 80));
}
