/**
 * CustomResourceDefinitions from zod schemas: one definition gives the TypeScript type, the check of input and the
 * structural schema that the API server holds.
 *
 * What JSON Schema cannot say goes into `.meta()`: `x-kubernetes-validations` (CEL), `x-kubernetes-list-type`,
 * `x-kubernetes-list-map-keys`, `x-kubernetes-int-or-string`, `x-kubernetes-preserve-unknown-fields`, `description`,
 * `format`. Put `.max()` on every text and list, so that the cost of CEL rules stays bounded.
 */
import { z } from 'zod';
import { recordOf } from '../record.ts';
import { type LabelRequirement, readSelector } from './label-selector.ts';
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

// Whether a value has the fields and types that its kind declares: what the API server says under strict field validation, for
// manifests that no API server has looked at. A field that is spelled wrong must not count as one that was left out.
// Source of the rule: `fieldValidation: Strict` of kube-apiserver over a structural schema. A null counts as a field that was left
// out, as the API server drops it. In a map it would be one label less to look at, and is refused, as the definitions of our kinds do.

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

// What the readers of our kinds have in common: they refuse what the API server refuses under strict field validation, because
// manifests of a folder were seen by no API server, and a slip there must not widen what is selected.
// Source of the rule: `fieldValidation: Strict` of kube-apiserver, and the bounds that the definitions of the kinds state.

/** Bounds of a selector; the definitions state the same ones, so that rules over it stay cheap. */
export const MAX_SELECTOR_LABELS = 16;
export const MAX_SELECTOR_EXPRESSIONS = 16;
export const MAX_SELECTOR_VALUES = 64;

/** A null is the empty text here, for the API server. */
const TEXTS: Shape = { map: 'string', nullable: true };

/** metav1.ObjectMeta. */
const METADATA: Shape = {
  fields: {
    name: 'string',
    generateName: 'string',
    namespace: 'string',
    labels: TEXTS,
    annotations: TEXTS,
    finalizers: { list: 'string' },
    ownerReferences: { list: 'any' },
    uid: 'string',
    resourceVersion: 'string',
    generation: 'integer',
    creationTimestamp: 'string',
    deletionTimestamp: 'string',
    deletionGracePeriodSeconds: 'integer',
    managedFields: { list: 'any' },
    selfLink: 'string',
  },
};

/**
 * Unknown fields and wrong types of an object of a kind of ours, each with its path.
 */
export function ownObjectProblems(object: KubeObject, spec: Shape): readonly string[] {
  const shape: Shape = {
    fields: { apiVersion: 'string', kind: 'string', metadata: METADATA, spec, status: 'any' },
  };
  return shapeProblems(object, shape, '');
}

/**
 * Fields of the spec that kubectl applied and the API server dropped, as it does with unknown ones without strict field validation or by an
 * older definition, and with a null in a patch: what is left may mean more than what was meant.
 */
export function droppedFieldProblems({ metadata }: KubeObject, spec: Shape): readonly string[] {
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

/** What a selector asks for, and what is wrong with it; with problems it asks for nothing that may be acted upon. */
export interface OwnSelector {
  readonly requirements: readonly LabelRequirement[];
  readonly problems: readonly string[];
}

/** Reads a selector that has the right shape. */
export function readOwnSelector(value: unknown, path: string): OwnSelector {
  const bounds = boundProblems(value, path);
  const read = readSelector(value);
  if (!read.ok) return { requirements: [], problems: [...bounds, `${path}: ${read.problem}`] };
  return { requirements: read.requirements, problems: bounds };
}

interface Selector {
  readonly matchLabels?: Readonly<Record<string, unknown>> | null;
  readonly matchExpressions?: readonly { readonly values?: readonly unknown[] | null }[] | null;
}

function boundProblems(value: unknown, path: string): readonly string[] {
  const { matchLabels, matchExpressions } = (value ?? {}) as Selector;
  const expressions = matchExpressions ?? [];
  return [
    ...tooMany(Object.keys(matchLabels ?? {}).length, MAX_SELECTOR_LABELS, `${path}.matchLabels`),
    ...tooMany(expressions.length, MAX_SELECTOR_EXPRESSIONS, `${path}.matchExpressions`),
    ...expressions.flatMap(({ values }, at) =>
      tooMany(values?.length ?? 0, MAX_SELECTOR_VALUES, `${path}.matchExpressions[${at}].values`),
    ),
  ];
}

/** `count` things where at most `max` may be. */
export function tooMany(count: number, max: number, path: string): readonly string[] {
  return count > max ? [`${path}: too many: ${count}: must have at most ${max} items`] : [];
}

/** Texts that are there more than once, each once. */
export function repeated(texts: readonly string[]): readonly string[] {
  return [...new Set(texts.filter((text, at) => texts.indexOf(text) !== at))];
}

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

/** `matchLabels` and `matchExpressions`, checked as the API server checks the selectors of built-in kinds. */
export function labelSelectorSchema(): z.ZodType {
  return z
    .strictObject({
      matchLabels: z
        .record(z.string().max(317), value.meta({ nullable: true }))
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
