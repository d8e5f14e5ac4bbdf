/**
 * Reads objects by the schemas of their kinds, and rejects what the API server rejects under strict field validation. Manifests
 * of a folder were never validated by an API server, and a misspelled field must not count as absent.
 *
 * Source of the rule: `fieldValidation: Strict` of kube-apiserver with a structural schema. Null counts as an absent field, as
 * the API server drops it. In a map it is rejected, as in our CRDs: without it, a selector would have one label less.
 */
import { z } from 'zod';
import { UsageError } from '../errors.ts';
import { jsonOf, recordOf } from '../record.ts';
import { type KubeObject, LAST_APPLIED } from './object.ts';

const texts = z.record(z.string(), z.string().nullable());

/** metav1.ObjectMeta. */
const METADATA = z
  .strictObject({
    name: z.string(),
    generateName: z.string(),
    namespace: z.string(),
    labels: texts,
    annotations: texts,
    finalizers: z.array(z.string()),
    ownerReferences: z.array(z.unknown()),
    uid: z.string(),
    resourceVersion: z.string(),
    generation: z.int(),
    creationTimestamp: z.string(),
    deletionTimestamp: z.string(),
    deletionGracePeriodSeconds: z.int(),
    managedFields: z.array(z.unknown()),
    selfLink: z.string(),
  })
  .partial();

/** Reads an object of a Pullwright kind. Never throws. */
export function readSpec<T>(object: KubeObject, spec: z.ZodType<T>) {
  const whole = z.strictObject({
    apiVersion: z.string(),
    kind: z.string(),
    metadata: METADATA,
    spec,
    status: z.unknown().optional(),
  });
  const read = readValue(withoutNulls(object, whole), whole, '');
  const dropped = droppedFieldProblems(object, spec);
  const isWhole = dropped.length === 0;
  return {
    /** With its defaults; undefined if there is a problem. */
    spec: isWhole ? read.value?.spec : undefined,
    /** Each with its path. */
    problems: [...read.problems, ...dropped],
    /**
     * False if the API server dropped a field that kubectl applied: an unknown field, without strict validation or with an older
     * CRD, or a null in a patch. The remaining spec may select more than intended.
     */
    isWhole,
  };
}

/** Validates a value in which null differs from an absent field; undefined if there is a problem. Never throws. */
export function readValue<T>(value: unknown, schema: z.ZodType<T>, path: string) {
  const read = schema.safeParse(value, { error: issueText, reportInput: true });
  return { value: read.data, problems: problemsOf(read.error, schema, path) };
}

/** A HostedCluster as `<namespace>/<name>`. */
export const SCOPE: z.ZodString = z
  .string()
  .regex(/^[^/]+\/[^/]+$/, mustBe('<namespace>/<name> of a HostedCluster'));

/**
 * Parses the options of a reconciler from `reconcile --config`; returns them by scope of a cluster. `clusters` maps
 * `<namespace>/<HostedCluster>` to options that override the common ones.
 *
 * @param own rejects options that a single cluster cannot have
 * @throws UsageError that lists every invalid field
 */
export function readOptions<T>(
  system: string,
  { clusters = {}, ...common }: Readonly<Record<string, unknown>>,
  schema: z.ZodType<T>,
  own: z.ZodType<Readonly<Record<string, unknown>>> = z.looseObject({}),
): (scope: string) => T {
  const all = readValue(common, schema, '');
  const maps = readValue(clusters, z.record(SCOPE, own), 'clusters');
  const read = Object.entries(maps.value ?? {}).map(
    ([scope, one]) => [scope, readValue({ ...common, ...one }, schema, `clusters["${scope}"]`)] as const,
  );
  const problems = [...all.problems, ...maps.problems, ...read.flatMap(([, one]) => one.problems)];
  if (problems.length > 0)
    throw new UsageError(`Cannot use the options of ${system}: ${problems.join('; ')}`);
  const byScope = new Map(read);
  return (scope) => (byScope.get(scope) ?? all).value as T;
}

function droppedFieldProblems({ metadata }: KubeObject, spec: z.ZodType): readonly string[] {
  const text: unknown = metadata.annotations?.[LAST_APPLIED];
  if (typeof text !== 'string') return [];
  return shapeProblems(recordOf(jsonOf(text))['spec'], spec, 'spec').map(
    (problem) =>
      `${problem}: kubectl applied it and the API server dropped it; correct it and apply the object again`,
  );
}

/** Every unknown field and every wrong type in `value`, with its path. */
export function shapeProblems(value: unknown, schema: z.ZodType, path: string): readonly string[] {
  const { error } = schema.safeParse(withoutNulls(value, schema), { error: issueText, reportInput: true });
  const issues = (error?.issues ?? []).filter(
    ({ code, input }) => code === 'unrecognized_keys' || (code === 'invalid_type' && input !== undefined),
  );
  return problemsOf({ issues }, schema, path);
}

/** The first issue of each path. */
function problemsOf(
  error: { readonly issues: readonly z.core.$ZodIssue[] } | undefined,
  schema: z.ZodType,
  root: string,
): readonly string[] {
  const byPath = new Map<string, readonly string[]>();
  for (const issue of error?.issues ?? []) {
    const path = pathText(schema, issue.path, root);
    const keys = issue.code === 'unrecognized_keys' ? issue.keys : [undefined];
    const problems = keys.map(
      (key) => `${key === undefined ? path : fieldPath(path, key)}: ${issue.message}`,
    );
    if (!byPath.has(path)) byPath.set(path, problems);
  }
  return [...byPath.values()].flat();
}

function issueText(issue: z.core.$ZodRawIssue): string | undefined {
  const { input } = issue;
  switch (issue.code) {
    case 'unrecognized_keys': {
      const { shape } = (issue.inst as z.ZodObject).def;
      const known = Object.keys(shape).map((field) => `"${field}"`);
      return `unknown field; must be one of ${known.join(', ')}`;
    }
    case 'invalid_type':
      if (input === undefined) return 'required value';
      if (input === null) return 'must not be null';
      return `invalid value ${shownValue(input)}: must be ${TYPES[issue.expected] ?? `a ${issue.expected}`}`;
    case 'invalid_value':
      return `${shownValue(input)} is none of ${issue.values.join(', ')}`;
    case 'too_small':
    case 'too_big':
      return boundText(issue);
    case 'invalid_key':
      return issue.issues[0]?.message;
    case 'invalid_format':
      return `invalid value ${shownValue(input)}: must match ${issue.pattern}`;
    default:
      return undefined;
  }
}

const TYPES: Readonly<Record<string, string>> = {
  int: 'an integer',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

function boundText(issue: z.core.$ZodRawIssue<z.core.$ZodIssueTooBig | z.core.$ZodIssueTooSmall>): string {
  const [words, bound] = issue.code === 'too_big' ? ['at most', issue.maximum] : ['at least', issue.minimum];
  if (Array.isArray(issue.input))
    return `too ${issue.code === 'too_big' ? 'many' : 'few'}: ${issue.input.length}: must have ${words} ${bound} items`;
  if (typeof issue.input !== 'string') return `must be ${words} ${bound}`;
  return `too ${issue.code === 'too_big' ? 'long' : 'short'}: must have ${words} ${bound} characters`;
}

/** Error for a string that does not match a pattern. */
export function mustBe(what: string): { readonly error: (issue: z.core.$ZodRawIssue) => string } {
  return { error: ({ input }) => `invalid value ${shownValue(input)}: must be ${what}` };
}

function shownValue(value: unknown): string {
  if (typeof value === 'string') return shownText(value);
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return Array.isArray(value) ? 'of type list' : 'of type object';
}

function shownText(text: string): string {
  return JSON.stringify(text.slice(0, 80));
}

const WRAPPERS = [z.ZodOptional, z.ZodExactOptional, z.ZodDefault, z.ZodPrefault, z.ZodReadonly];

function unwrapped(schema: unknown): unknown {
  let found = schema;
  while (WRAPPERS.some((wrapper) => found instanceof wrapper)) found = (found as z.ZodOptional).unwrap();
  return found;
}

function fieldPath(path: string, key: string): string {
  if (!/^[\w-]{1,63}$/.test(key)) return `${path}[${shownText(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}

function pathText(schema: z.ZodType, path: readonly PropertyKey[], root: string): string {
  let [text, at]: [string, unknown] = [root, schema];
  for (const step of path) {
    const here = unwrapped(at);
    const key = String(step);
    if (here instanceof z.ZodArray) [text, at] = [`${text}[${key}]`, here.element];
    else if (here instanceof z.ZodRecord) [text, at] = [`${text}[${shownText(key)}]`, here.valueType];
    else [text, at] = [fieldPath(text, key), here instanceof z.ZodObject ? here.shape[key] : undefined];
  }
  return text;
}

/** Removes the nulls that the API server drops. */
function withoutNulls(value: unknown, schema: unknown): unknown {
  const here = unwrapped(schema);
  if (Array.isArray(value))
    return here instanceof z.ZodArray ? value.map((one) => withoutNulls(one, here.element)) : value;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value);
  if (here instanceof z.ZodRecord)
    return Object.fromEntries(entries.map(([key, one]) => [key, withoutNulls(one, here.valueType)]));
  if (!(here instanceof z.ZodObject)) return value;
  return Object.fromEntries(
    entries.filter(([, one]) => one !== null).map(([key, one]) => [key, withoutNulls(one, here.shape[key])]),
  );
}

/** Rejects duplicate strings. */
export function noDuplicates(texts: readonly string[], context: z.core.$RefinementCtx): void {
  for (const text of new Set(texts.filter((one, at) => texts.indexOf(one) !== at)))
    refuse(context, `duplicate value: ${JSON.stringify(text)}`);
}

/** Rejects more than `max` entries; the schema of a map cannot express this. */
export function atMost(max: number): (map: object, context: z.core.$RefinementCtx) => void {
  return (map, context) => {
    const { length } = Object.keys(map);
    if (length > max) refuse(context, `too many: ${length}: must have at most ${max} items`);
  };
}

/** Adds a problem, at a path relative to the current value. */
export function refuse(
  context: z.core.$RefinementCtx,
  message: string,
  path: readonly (string | number)[] = [],
): void {
  context.addIssue({ code: 'custom', message, path: [...path] });
}
