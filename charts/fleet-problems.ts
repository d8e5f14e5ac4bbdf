/** Validation errors of a fleet, each with its path, the actual and the expected value. */
import type { z } from 'zod';
import { PullwrightError } from '../runtime/core/errors.ts';
import { counted, nearWord, onOneLine } from '../runtime/core/text.ts';

/** Keys and indexes from the top of the fleet. */
export type FieldPath = readonly (string | number)[];

/** One validation error. */
export interface FleetProblem {
  readonly path: FieldPath;
  /** `expected one of "gitops", "reconciler", got "git"` */
  readonly text: string;
}

/** A validation error and its position in a file. */
export interface LocatedProblem extends FleetProblem {
  /** Counts from 1; absent for fleets that are not read from a file. */
  readonly line?: number;
  readonly column?: number;
}

/** Thrown for an invalid fleet. The message lists all problems, one per line. */
export class FleetError extends PullwrightError {
  readonly problems: readonly LocatedProblem[];

  constructor(source: string, problems: readonly LocatedProblem[]) {
    const count = counted(problems.length, 'problem');
    super(onOneLine(`Cannot read fleet "${source}": ${count}`), {
      code: 'FleetInvalid',
      retryPolicy: 'terminal',
      details: problems.map((problem) => onOneLine(describeProblem(source, problem))),
    });
    this.name = 'FleetError';
    this.problems = problems;
  }
}

/**
 * Formats a problem as `fleet.yaml:4:11 clusters[0].kind: expected ...`, a location format of editors and terminals.
 *
 * @example
 * ```ts
 * import { describeProblem } from './fleet-problems.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(
 *   describeProblem('fleet.yaml', { path: ['clusters', 0, 'kind'], text: 'missing', line: 4, column: 11 }),
 *   'fleet.yaml:4:11 clusters[0].kind: missing',
 * );
 * ```
 */
export function describeProblem(source: string, problem: LocatedProblem): string {
  const place = problem.line === undefined ? '' : `${source}:${problem.line}:${problem.column} `;
  const path = pathText(problem.path);
  return `${place}${path === '' ? '' : `${path}: `}${problem.text}`;
}

/** `clusters[0].systems.global-pull-secret` */
export function pathText(path: FieldPath): string {
  return path
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${part}`))
    .join('');
}

/** Validates `value`. Returns the parsed value, or all problems. @param at path of the value */
export function check<T>(
  schema: z.ZodType<T>,
  value: unknown,
  at: FieldPath,
): { readonly value?: T; readonly problems: readonly FleetProblem[] } {
  const known = new Map<unknown, readonly string[]>();
  const parsed = schema.safeParse(value, {
    error: (issue) => {
      const { def } = (issue.inst ?? {}) as { readonly def?: { readonly shape?: object } };
      if (issue.code === 'unrecognized_keys') known.set(issue['keys'], Object.keys(def?.shape ?? {}));
      return undefined;
    },
  });
  if (parsed.success) return { value: parsed.data, problems: [] };
  const problems = parsed.error.issues.flatMap((issue) => {
    const path = [...at, ...issue.path.map((part) => (typeof part === 'number' ? part : String(part)))];
    if (issue.code !== 'unrecognized_keys')
      return [{ path, text: textOf(issue, valueAt(value, issue.path)) }];
    const fields = known.get(issue.keys) ?? [];
    return issue.keys.map((key) => ({ path: [...path, key], text: unknownField(key, fields) }));
  });
  return { problems };
}

/** Returns `unknown field, did you mean "delivery"?`, or the list of known fields. */
export function unknownField(key: string, known: readonly string[]): string {
  if (CREDENTIAL_FIELDS.has(key.toLowerCase()))
    return 'credentials are not allowed in a fleet: use a source (externalSecret, sealedSecret, sops) and remove it from the git history';
  return `unknown field, ${suggestion(key, known)}`;
}

/** Returns `did you mean "x"?` for a near miss, else `expected one of ...`. */
export function suggestion(word: string, known: readonly string[]): string {
  const near = nearWord(word, known);
  return near === undefined
    ? `expected one of ${known.map((one) => JSON.stringify(one)).join(', ')}`
    : `did you mean ${JSON.stringify(near)}?`;
}

const CREDENTIAL_FIELDS: ReadonlySet<string> = new Set([
  '.dockerconfigjson',
  'dockerconfigjson',
  'auth',
  'auths',
  'data',
  'password',
  'stringdata',
  'token',
  'value',
]);

function textOf(issue: z.core.$ZodIssue, value: unknown): string {
  const wanted = wantedOf(issue, value);
  if (value === undefined) return `missing, ${wanted}`;
  const isWrongKind = issue.code === 'invalid_type' || issue.code === 'invalid_value';
  const isOwnText = issue.code === 'custom' || (typeof value === 'object' && !isWrongKind);
  const near =
    issue.code === 'invalid_value' && typeof value === 'string' ? nearValue(value, issue.values) : '';
  return isOwnText ? wanted : `${wanted}, got ${shown(value, issue.path)}${near}`;
}

function wantedOf(issue: z.core.$ZodIssue, value: unknown): string {
  if (issue.code === 'invalid_type') return `expected ${ARTICLES[issue.expected] ?? issue.expected}`;
  if (issue.code === 'invalid_value') {
    const values = issue.values.map((one) => JSON.stringify(one)).join(', ');
    return issue.values.length === 1 ? `expected ${values}` : `expected one of ${values}`;
  }
  if (issue.code === 'too_small' && typeof value === 'number') return `expected at least ${issue.minimum}`;
  if (issue.code === 'too_big' && typeof value === 'number') return `expected at most ${issue.maximum}`;
  return `${issue.message.charAt(0).toLowerCase()}${issue.message.slice(1)}`;
}

function nearValue(value: string, values: readonly unknown[]): string {
  const words = values.filter((one): one is string => typeof one === 'string');
  const near = nearWord(value, words);
  return near === undefined ? '' : `: did you mean ${JSON.stringify(near)}?`;
}

const ARTICLES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'a map',
  record: 'a map',
  array: 'a list',
};

/** Formats the actual value: short strings and numbers verbatim, but nothing from a field that may hold a pasted credential. */
function shown(value: unknown, path: readonly PropertyKey[]): string {
  if (value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map';
  const hidden = path.some((part) =>
    /secret$|source|sealed|encrypted|auth|password|token/i.test(
      String(part).replace('global-pull-secret', ''),
    ),
  );
  if (typeof value === 'string')
    return hidden || value.length > 80 ? `a string of ${value.length} characters` : JSON.stringify(value);
  return typeof value === 'number' || typeof value === 'boolean' ? `${value}` : `a ${typeof value}`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (node, part) =>
      typeof node === 'object' && node !== null ? (node as Record<PropertyKey, unknown>)[part] : undefined,
    value,
  );
}
