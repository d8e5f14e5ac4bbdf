/** Fields of a schema as table rows, for custom resources and the fleet file. */
import type { z } from 'zod';
import { codeSpan, prose, table } from './markdown.ts';

type Keywords = 'description' | 'default' | 'enum' | 'const' | 'format' | 'required';

/** The keywords of JSON Schema that a row shows. */
interface Schema extends Pick<z.core.JSONSchema.BaseSchema, Keywords> {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}

/** A field with its path from the root. */
export interface FieldRow {
  /** `spec.secrets[].name` */
  readonly path: string;
  readonly type: string;
  readonly required: boolean;
  readonly default: string;
  readonly description: string;
}

/**
 * Returns every field below a schema, outer ones first.
 *
 * @example
 * ```ts
 * import { fieldRows } from './fields.ts';
 * import assert from 'node:assert/strict';
 *
 * const schema = { required: ['a'], properties: { a: { type: 'array', items: { type: 'object', properties: { b: { enum: ['x'] } } } } } };
 * assert.deepEqual(fieldRows(schema).map(({ path, type, required }) => [path, type, required]), [['a', 'list of objects', true], ['a[].b', 'x', false]]);
 * ```
 */
export function fieldRows(schema: Schema, path = ''): readonly FieldRow[] {
  const { properties = {}, required = [], items, additionalProperties } = schema;
  const own = Object.entries(properties).flatMap(([name, field]) => {
    const at = path === '' ? name : `${path}.${name}`;
    const row: FieldRow = {
      path: at,
      type: typeOf(field),
      required: required.includes(name),
      default: 'default' in field ? JSON.stringify(field.default) : '',
      description: describedBy(field),
    };
    return [row, ...fieldRows(field, at)];
  });
  return [
    ...own,
    ...(items === undefined ? [] : fieldRows(items, `${path}[]`)),
    ...(typeof additionalProperties === 'object' ? fieldRows(additionalProperties, `${path}.*`) : []),
    ...branchesOf(schema).flatMap((branch) => fieldRows(branch, path)),
  ];
}

/** Renders the rows as a table. */
export function fieldTable(rows: readonly FieldRow[]): readonly string[] {
  return table(
    ['field', 'type', 'default', ''],
    rows.map((row) => [
      `${codeSpan(row.path)}${row.required ? ' (required)' : ''}`,
      prose(row.type),
      row.default === '' ? '' : codeSpan(row.default),
      prose(row.description),
    ]),
  );
}

function branchesOf({ anyOf = [], oneOf = [], allOf = [] }: Schema): readonly Schema[] {
  return [...anyOf, ...oneOf, ...allOf];
}

/** The description of the field, or of its first alternative that has one. */
function describedBy(field: Schema): string {
  const branches = (): string[] => branchesOf(field).map(describedBy);
  return field.description ?? branches().find((text) => text !== '') ?? '';
}

function typeOf(field: Schema): string {
  const { enum: values, const: only, type, items, format } = field;
  if (values !== undefined) return values.map(String).join(', ');
  if (only !== undefined) return JSON.stringify(only).replaceAll('"', '');
  if (type === 'array') return items === undefined ? 'list' : `list of ${plural(typeOf(items))}`;
  if (type === 'string' && format === 'date-time') return 'time';
  if (type !== undefined) return [type].flat().join(' or ');
  return [...new Set(branchesOf(field).map(typeOf))].filter((name) => name !== 'null').join(' or ');
}

function plural(name: string): string {
  return /^(string|object|integer|number|boolean)$/.test(name) ? `${name}s` : name;
}
