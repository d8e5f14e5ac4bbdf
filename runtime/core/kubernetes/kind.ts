/**
 * CustomResourceDefinitions from zod schemas: one definition gives the TypeScript type, the check of input and the
 * structural schema that the API server holds.
 *
 * What JSON Schema cannot say goes into `.meta()`: `x-kubernetes-validations` (CEL), `x-kubernetes-list-type`,
 * `x-kubernetes-list-map-keys`, `x-kubernetes-int-or-string`, `x-kubernetes-preserve-unknown-fields`, `description`,
 * `format`. Put `.max()` on every text and list, so that the cost of CEL rules stays bounded.
 */
import { z } from 'zod';
import { UsageError } from '../errors.ts';
import { recordOf } from '../record.ts';
import { readSelector } from './label-selector.ts';
import { type KubeObject, LAST_APPLIED } from './object.ts';
import { type CrdVersionObject, kubernetesObject } from './objects.ts';

/** A column of `kubectl get`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly jsonPath: string;
  /** 0 is always shown, 1 only with `-o wide`. @default {0} */
  readonly priority?: number;
  readonly description?: string;
}

export interface CrdVersion {
  /** `v1alpha1` */
  readonly name: string;
  /** Exactly one version is stored. @default {true} */
  readonly storage?: boolean;
  /** The object without apiVersion, kind and metadata: usually `{ spec, status }`. `.meta()` on it holds rules of the whole object. */
  readonly schema: z.ZodType;
  /** Whether `status` is a subresource. @default {true} */
  readonly status?: boolean;
  readonly printerColumns?: readonly PrinterColumn[];
}

export interface CrdInput {
  readonly group: string;
  readonly kind: string;
  /** @default the kind in lower case with an `s` */
  readonly plural?: string;
  readonly shortNames?: readonly string[];
  /** `pullcreds` lists everything of ours. */
  readonly categories?: readonly string[];
  readonly scope: 'Namespaced' | 'Cluster';
  readonly versions: readonly CrdVersion[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The category under which `kubectl get pullcreds` lists every kind of ours. */
export const CATEGORY = 'pullcreds';

/** Removing a CRD removes every object of its kind, so that no GitOps tool may prune one. */
export const NEVER_PRUNE: Readonly<Record<string, string>> = {
  'argocd.argoproj.io/sync-options': 'Prune=false',
  'kustomize.toolkit.fluxcd.io/prune': 'disabled',
};

/**
 * The CustomResourceDefinition object.
 *
 * @throws TypeError when the schema cannot be said structurally (a union, a tuple), or not exactly one version is stored
 */
export function crd(input: CrdInput): KubeObject {
  const plural = input.plural ?? `${input.kind.toLowerCase()}s`;
  const stored = input.versions.filter((version) => version.storage ?? true);
  if (stored.length !== 1)
    throw new TypeError(
      `Cannot build CRD "${plural}.${input.group}": ${stored.length} stored versions, expected 1`,
    );
  return kubernetesObject(
    'CustomResourceDefinition',
    {
      name: `${plural}.${input.group}`,
      ...(input.labels === undefined ? {} : { labels: input.labels }),
      annotations: { ...NEVER_PRUNE, ...input.annotations },
    },
    {
      spec: {
        group: input.group,
        names: {
          kind: input.kind,
          listKind: `${input.kind}List`,
          plural,
          singular: input.kind.toLowerCase(),
          ...(input.shortNames === undefined ? {} : { shortNames: input.shortNames }),
          ...(input.categories === undefined ? {} : { categories: input.categories }),
        },
        scope: input.scope,
        versions: input.versions.map(crdVersion),
      },
    },
  );
}

function crdVersion(version: CrdVersion): CrdVersionObject {
  return {
    name: version.name,
    served: true,
    storage: version.storage ?? true,
    schema: { openAPIV3Schema: objectSchema(version.schema) },
    ...((version.status ?? true) ? { subresources: { status: {} } } : {}),
    ...(version.printerColumns === undefined
      ? {}
      : { additionalPrinterColumns: version.printerColumns.map((column) => ({ ...column })) }),
  };
}

/** Every object also has apiVersion, kind and metadata. */
function objectSchema(schema: z.ZodType): Schema {
  const root = structuralSchema(schema);
  return {
    ...root,
    properties: {
      apiVersion: { type: 'string', description: 'Version of the schema' },
      kind: { type: 'string', description: 'Kind of the object' },
      // The API server refuses a description here: metadata is its own.
      metadata: { type: 'object' },
      ...sections(root['properties'] as Schema),
    },
  };
}

type Schema = Readonly<Record<string, unknown>>;

const SECTIONS: Readonly<Record<string, string>> = { spec: 'What is wanted', status: 'What is the case' };

function sections(properties: Schema): Schema {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      { description: SECTIONS[name], ...(schema as Schema) },
    ]),
  );
}

/** A zod schema in the form that the API server takes: no `additionalProperties: false`, open objects by their own word. */
export function structuralSchema(schema: z.ZodType): Schema {
  return structural(z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input' }), '$');
}

const NOT_STRUCTURAL = ['anyOf', 'oneOf', 'allOf', 'not', '$ref', 'propertyNames'];

function structural(node: unknown, path: string): Schema {
  const { additionalProperties, properties, items, ...rest } = node as Record<string, unknown>;
  for (const word of NOT_STRUCTURAL) {
    if (word in rest && !(word === 'anyOf' && saysWhichFields(rest[word])))
      throw new TypeError(
        `Cannot build a structural schema: ${path} uses "${word}", expected one type per field`,
      );
  }
  return {
    ...rest,
    ...(properties === undefined ? {} : { properties: structuralFields(properties as Schema, path) }),
    ...(items === undefined ? {} : { items: structural(items, `${path}[]`) }),
    ...openness(additionalProperties, path),
  };
}

/** Alternatives over which fields there are, beside one type of each: a structural schema may have them. */
function saysWhichFields(alternatives: unknown): boolean {
  return (alternatives as readonly object[]).every((one) =>
    Object.keys(one).every((word) => word === 'required' || word === 'maxProperties'),
  );
}

function structuralFields(fields: Schema, path: string): Schema {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, structural(value, `${path}.${name}`)]),
  );
}

/** zod says `false` for closed objects (the API server prunes anyway) and `{}` for open ones. */
function openness(additional: unknown, path: string): Schema {
  if (additional === undefined || additional === false) return {};
  const schema = additional as Schema;
  if (Object.keys(schema).length === 0) return { 'x-kubernetes-preserve-unknown-fields': true };
  return { additionalProperties: structural(schema, `${path}.*`) };
}

/** `metav1.Condition[]`, a map by `type`. For `status.conditions`. */
export function conditionsSchema(): z.ZodType {
  return z
    .array(
      z.strictObject({
        type: z.string().max(316).describe('Name of the condition; Ready sums up'),
        status: z.enum(['True', 'False', 'Unknown']).describe('Whether it is so'),
        reason: z.string().min(1).max(1024).describe('Why, for programs: CamelCase, stable'),
        message: z.string().max(32768).describe('What is the case and what to do, for people'),
        lastTransitionTime: z.string().meta({ format: 'date-time' }).describe('When status last changed'),
        observedGeneration: z
          .int()
          .min(0)
          .meta({ format: 'int64' })
          .describe('The metadata.generation that the condition speaks of')
          .optional(),
      }),
    )
    .max(32)
    .describe('Aspects of the state, one per type')
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] });
}

/** `metadata.generation` that a status speaks of. For `status.observedGeneration`. @param initial what the API server fills in */
export function observedGenerationSchema(initial?: number): z.ZodType {
  return z
    .int()
    .meta({ format: 'int64', ...(initial === undefined ? {} : { default: initial }) })
    .describe('The metadata.generation that this status speaks of')
    .optional();
}

// Reading by the same schemas: what the API server refuses under strict field validation is refused, because no API server has looked at
// manifests of a folder, and a field that is spelled wrong must not count as one that was left out.
// Source of the rule: `fieldValidation: Strict` of kube-apiserver over a structural schema. A null counts as a field that was left
// out, as the API server drops it. In a map it would be one label less to look at, and is refused, as the definitions of our kinds do.

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

/** The spec of an object of ours, with its defaults filled in; undefined when there is a problem. */
export interface ReadSpec<T> {
  readonly spec: T | undefined;
  /** Each with its path. */
  readonly problems: readonly string[];
  /**
   * No field that kubectl applied was dropped by the API server, as it does with unknown ones without strict field validation or by an older
   * definition, and with a null in a patch: what is left may mean more than what was meant.
   */
  readonly isWhole: boolean;
}

/** Reads an object of a kind of ours. Total. */
export function readSpec<T>(object: KubeObject, spec: z.ZodType<T>): ReadSpec<T> {
  const whole = z.strictObject({
    apiVersion: z.string(),
    kind: z.string(),
    metadata: METADATA,
    spec,
    status: z.unknown().optional(),
  });
  const read = readValue(object, whole, '');
  const dropped = droppedFieldProblems(object, spec);
  const problems = [...read.problems, ...dropped];
  const { spec: found } = read.value ?? {};
  return { spec: dropped.length > 0 ? undefined : found, problems, isWhole: dropped.length === 0 };
}

/** Reads a value; undefined when there is a problem. Total. */
export function readValue<T>(
  value: unknown,
  schema: z.ZodType<T>,
  path: string,
): { readonly value: T | undefined; readonly problems: readonly string[] } {
  const read = schema.safeParse(withoutNulls(value, schema), { error: issueText, reportInput: true });
  return { value: read.data, problems: problemsOf(read.error, schema, path) };
}

/**
 * Options of a reconciler as `reconcile --config` has them, by the scope of a cluster. `clusters` holds maps of the same options by
 * `<namespace>/<HostedCluster>`: each has the options of all, its own over them.
 *
 * @throws UsageError that names every wrong field
 */
export function readOptions<T>(
  system: string,
  { clusters = {}, ...common }: Readonly<Record<string, unknown>>,
  schema: z.ZodType<T>,
): (scope: string) => T {
  const all = readValue(common, schema, '');
  const maps = readValue(clusters, z.record(z.string(), z.looseObject({})), 'clusters');
  const own = Object.entries(maps.value ?? {}).map(
    ([scope, one]) => [scope, readValue({ ...common, ...one }, schema, `clusters["${scope}"]`)] as const,
  );
  const problems = [...all.problems, ...maps.problems, ...own.flatMap(([, read]) => read.problems)];
  if (problems.length > 0)
    throw new UsageError(`Cannot use the options of ${system}: ${problems.join('; ')}`);
  const byScope = new Map(own);
  return (scope) => (byScope.get(scope) ?? all).value as T;
}

function droppedFieldProblems({ metadata }: KubeObject, spec: z.ZodType): readonly string[] {
  const text: unknown = metadata.annotations?.[LAST_APPLIED];
  if (typeof text !== 'string') return [];
  return shapeProblems(recordOf(parsed(text))['spec'], spec, 'spec').map(
    (problem) =>
      `${problem}: kubectl applied it and the API server dropped it; correct it and apply the object again`,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Every unknown field and every wrong type in `value`, each with its path. */
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

/** What a text that a pattern refuses must be. */
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
    if (here instanceof z.ZodArray) [text, at] = [`${text}[${String(step)}]`, here.element];
    else if (here instanceof z.ZodRecord)
      [text, at] = [`${text}[${shownText(String(step))}]`, here.valueType];
    else
      [text, at] = [
        fieldPath(text, String(step)),
        here instanceof z.ZodObject ? here.shape[step as string] : undefined,
      ];
  }
  return text;
}

/** Without the nulls that the API server drops. */
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

/** Refuses texts that are there more than once. */
export function noDuplicates(texts: readonly string[], context: z.core.$RefinementCtx): void {
  for (const text of new Set(texts.filter((one, at) => texts.indexOf(one) !== at)))
    refuse(context, `duplicate value: ${JSON.stringify(text)}`);
}

/** Refuses more entries than a schema of a map can say. */
export function atMost(max: number): (map: object, context: z.core.$RefinementCtx) => void {
  return (map, context) => {
    const { length } = Object.keys(map);
    if (length > max) refuse(context, `too many: ${length}: must have at most ${max} items`);
  };
}

/** Adds a problem, at a path below. */
export function refuse(
  context: z.core.$RefinementCtx,
  message: string,
  path: readonly (string | number)[] = [],
): void {
  context.addIssue({ code: 'custom', message, path: [...path] });
}

/** A list that is a map by `name`. */
export function namedList<T extends z.ZodType<{ readonly name: string }>>(
  item: T,
  max: number,
): z.ZodArray<T> {
  return z
    .array(item)
    .min(1)
    .max(max)
    .superRefine((list, context) =>
      noDuplicates(
        list.map(({ name }) => name),
        context,
      ),
    )
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] });
}

/** Bounds of a selector, so that rules over it stay cheap. */
const MAX_SELECTOR_LABELS = 16;
const MAX_SELECTOR_EXPRESSIONS = 16;
const MAX_SELECTOR_VALUES = 64;

// metav1.LabelSelector as a schema, bounded so that rules over it stay cheap.

const key = z.string().min(1).max(317);
const value = z
  .string()
  .max(63)
  .regex(/^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/);

/**
 * Without strict field validation (`--validate=false`, most clients) the API server drops what a schema does not know, and of
 * `{matchlabels: …}` would stay `{}`, which selects everything. So unknown fields are kept here, and refused by what must be there.
 */
const NOTHING_UNKNOWN = {
  'x-kubernetes-preserve-unknown-fields': true,
  anyOf: [
    { maxProperties: 0 },
    { maxProperties: 1, required: ['matchLabels'] },
    { maxProperties: 1, required: ['matchExpressions'] },
    { maxProperties: 2, required: ['matchLabels', 'matchExpressions'] },
  ],
};

/**
 * Keeps a map whole: of `{team: null}` (a template without its value) the API server would drop the label, without a word even under strict
 * validation, and `{}` selects everything. So a null may come in, and is refused by the rule beside it.
 */
export const NO_NULLS: { readonly rule: string; readonly message: string } = {
  rule: 'self.all(k, dyn(self[k]) != null)',
  message: 'a value must not be null: write it, or leave its key out',
};

/** metav1.LabelSelector. */
export interface SelectorInput {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?:
    | readonly {
        readonly key: string;
        readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
        readonly values?: readonly string[] | undefined;
      }[]
    | undefined;
}

/**
 * `matchLabels` and `matchExpressions`, checked as the API server checks the selectors of built-in kinds.
 *
 * @param all what an empty one selects, for the text when it is missing
 */
export function labelSelectorSchema(all = 'of them'): z.ZodType<SelectorInput, SelectorInput> {
  return z
    .strictObject(
      {
        matchLabels: z
          .record(z.string().max(317), value.meta({ nullable: true }))
          .superRefine(atMost(MAX_SELECTOR_LABELS))
          .meta({ maxProperties: MAX_SELECTOR_LABELS, 'x-kubernetes-validations': [NO_NULLS] })
          .describe('Labels that an object must have, all of them')
          .optional(),
        matchExpressions: z
          .array(
            z
              .strictObject({
                key: key.describe('Key of a label'),
                operator: z
                  .enum(['In', 'NotIn', 'Exists', 'DoesNotExist'])
                  .describe('What must be the case with the label of this key'),
                values: z
                  .array(value)
                  .max(MAX_SELECTOR_VALUES)
                  .meta({ 'x-kubernetes-list-type': 'atomic' })
                  .describe('Values of the label, for In and NotIn')
                  .optional(),
              })
              .meta({
                'x-kubernetes-validations': [
                  {
                    rule: "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
                    message: 'In and NotIn need values, Exists and DoesNotExist must not have any',
                  },
                ],
              }),
          )
          .max(MAX_SELECTOR_EXPRESSIONS)
          .meta({ 'x-kubernetes-list-type': 'atomic' })
          .describe('Further demands on labels, which must all hold')
          .optional(),
      },
      {
        error: ({ code, input }) =>
          code === 'invalid_type' && input === undefined
            ? `required value: must be a label selector; {} selects all ${all}`
            : undefined,
      },
    )
    .superRefine((selector, context) => {
      const read = readSelector(selector);
      if (!read.ok) refuse(context, read.problem);
    })
    .meta(NOTHING_UNKNOWN);
}

/** A mistake that a schema cannot see. */
export interface SectionProblem {
  /** Below the section: `['agent', 'shape']`. */
  readonly path: readonly (string | number)[];
  /** What is there and what is wanted. */
  readonly text: string;
  /** Whether it is one only where the cluster itself says it: defaults speak to whichever clusters they can. @default {false} */
  readonly ownOnly?: boolean;
}
