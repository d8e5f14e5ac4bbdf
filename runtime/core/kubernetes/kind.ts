/**
 * Builds CustomResourceDefinitions from zod schemas: one definition gives the TypeScript type, input validation and the
 * structural schema for the API server.
 *
 * What JSON Schema cannot express goes into `.meta()`: `x-kubernetes-validations` (CEL), `x-kubernetes-list-type`,
 * `x-kubernetes-list-map-keys`, `x-kubernetes-int-or-string`, `x-kubernetes-preserve-unknown-fields`, `description`,
 * `format`. Set `.max()` on every string and list, to bound the cost of CEL rules.
 */
import { z } from 'zod';
import { mapValues } from '../record.ts';
import type { Frozen } from './fields.ts';
import { readSelector } from './label-selector.ts';
import type { KubeObject } from './object.ts';
import { kubernetesObject, labels } from './objects.ts';
import { atMost, noDuplicates, readSpec, refuse } from './read-spec.ts';

/** A column of `kubectl get`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly jsonPath: string;
  /** 0 is always shown, 1 only with `-o wide`. @default {0} */
  readonly priority?: number;
}

export interface CrdVersion {
  /** `v1alpha1` */
  readonly name: string;
  /** Exactly one version is stored. @default {true} */
  readonly storage?: boolean;
  /** The object without apiVersion, kind and metadata: usually `{ spec, status }`. Its `.meta()` has rules for all of it. */
  readonly schema: z.ZodType;
  readonly printerColumns?: readonly PrinterColumn[];
}

export interface CrdInput {
  readonly group: string;
  readonly kind: string;
  /** @default the kind in lower case with an `s` */
  readonly plural?: string;
  /** Of a kind of Pullwright, which is in {@link CATEGORY} too. */
  readonly shortName?: string;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly versions: readonly CrdVersion[];
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The category under which `kubectl get pullcreds` lists all kinds of Pullwright. */
export const CATEGORY = 'pullcreds';

/** Deleting a CRD deletes every object of its kind, so GitOps tools must never prune one. */
export const NEVER_PRUNE: Readonly<Record<string, string>> = {
  'argocd.argoproj.io/sync-options': 'Prune=false',
  'kustomize.toolkit.fluxcd.io/prune': 'disabled',
};

/**
 * Builds a CustomResourceDefinition.
 *
 * @throws TypeError if the schema is not structural (a union, a tuple), or not exactly one version is stored
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
      labels: labels({ name: input.kind.toLowerCase(), component: 'crd' }),
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
          ...(input.shortName && { shortNames: [input.shortName], categories: [CATEGORY] }),
        },
        scope: input.scope,
        versions: input.versions.map(({ name, storage = true, schema, printerColumns }) => ({
          name,
          served: true,
          storage,
          schema: { openAPIV3Schema: objectSchema(schema) },
          subresources: { status: {} },
          ...(printerColumns && { additionalPrinterColumns: printerColumns }),
        })),
      },
    },
  );
}

/** Adds apiVersion, kind and metadata, which every object has. */
function objectSchema(schema: z.ZodType): Schema {
  const root = structuralSchema(schema);
  return {
    ...root,
    properties: {
      apiVersion: { type: 'string', description: 'Version of the schema' },
      kind: { type: 'string', description: 'Kind of the object' },
      // The API server rejects a description here, because it defines metadata itself.
      metadata: { type: 'object' },
      ...mapValues(root['properties'] as Readonly<Record<string, Schema>>, (part, name) => ({
        description: SECTIONS[name],
        ...part,
      })),
    },
  };
}

type Schema = Readonly<Record<string, unknown>>;

const SECTIONS: Readonly<Record<string, string>> = { spec: 'Desired state', status: 'Observed state' };

/** Converts a zod schema to the API server's form: no `additionalProperties: false`, and an extension for open objects. */
export function structuralSchema(schema: z.ZodType): Schema {
  return structural(z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input' }), '$');
}

const NOT_STRUCTURAL = ['anyOf', 'oneOf', 'allOf', 'not', '$ref', 'propertyNames'];

function structural(node: unknown, path: string): Schema {
  const { additionalProperties, properties, items, ...rest } = node as Record<string, unknown>;
  const fields = (all: Schema) => mapValues(all, (field, name) => structural(field, `${path}.${name}`));
  for (const word of NOT_STRUCTURAL) {
    if (word in rest && !(word === 'anyOf' && saysWhichFields(rest[word])))
      throw new TypeError(
        `Cannot build a structural schema: ${path} uses "${word}", expected one type per field`,
      );
  }
  return {
    ...rest,
    ...(properties === undefined ? {} : { properties: fields(properties as Schema) }),
    ...(items === undefined ? {} : { items: structural(items, `${path}[]`) }),
    ...openness(additionalProperties, path),
  };
}

/** Alternatives that only say which fields exist, next to one type per field: a structural schema may have them. */
function saysWhichFields(alternatives: unknown): boolean {
  return (alternatives as readonly object[]).every((one) =>
    Object.keys(one).every((word) => word === 'required' || word === 'maxProperties'),
  );
}

/** zod emits `false` for closed objects (the API server prunes anyway) and `{}` for open ones. */
function openness(additional: unknown, path: string): Schema {
  if (additional === undefined || additional === false) return {};
  const schema = additional as Schema;
  if (Object.keys(schema).length === 0) return { 'x-kubernetes-preserve-unknown-fields': true };
  return { additionalProperties: structural(schema, `${path}.*`) };
}

// Pullwright's own kinds: one schema of the spec gives the CRD, input validation and the defaults.

export const OWN_GROUP = 'pullwright.dev';
export const OWN_VERSION = 'v1alpha1';

export interface KindInput<T> extends Omit<CrdInput, 'group' | 'versions' | 'annotations'> {
  readonly description: string;
  /** Shown before `Ready`. */
  readonly columns: readonly PrinterColumn[];
  /** Name of the column for the message of `Ready`. @default {'Message'} */
  readonly messageColumn?: string;
  /** Absent for kinds that only Pullwright writes. Schemas are built on first use: many programs never read the kind. */
  readonly spec?: () => z.ZodType<T>;
  readonly status: () => z.ZodType;
}

/** Defines a kind in group `pullwright.dev`; `kubectl get pullcreds` lists its objects. */
export function defineKind<T>(input: KindInput<T>) {
  const { description, columns, messageColumn = 'Message', spec, status, ...names } = input;
  const ready = (name: string, field: string): PrinterColumn => ({
    name,
    type: 'string',
    jsonPath: `.status.conditions[?(@.type=="Ready")].${field}`,
  });
  const printerColumns: readonly PrinterColumn[] = [
    ...columns,
    ready('Ready', 'status'),
    ready('Reason', 'reason'),
    { ...ready(messageColumn, 'message'), priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ];
  let built: z.ZodType<T> | undefined;
  const specSchema = (): z.ZodType<T> => (built ??= spec?.() ?? (z.unknown() as z.ZodType<T>));
  return {
    crd: () => {
      const fields = { ...(spec && { spec: specSchema() }), status: status() };
      const schema = z.strictObject(fields).meta({ description });
      const versions = [{ name: OWN_VERSION, schema, printerColumns }];
      return crd({ ...names, group: OWN_GROUP, versions });
    },
    /** Reads an object. Never throws. */
    read: (object: KubeObject) => readSpec(object, specSchema()),
  };
}

/** Status of a Pullwright kind. Its default makes a new object in progress until it is reconciled. */
export function statusSchema(fields: Readonly<Record<string, z.ZodType>> = {}): z.ZodType {
  return z
    .strictObject({
      observedGeneration: observedGenerationSchema(-1),
      ...fields,
      conditions: conditionsSchema().optional(),
    })
    .meta({ default: { observedGeneration: -1 } })
    .optional();
}

/** A validation rule over several fields. */
export interface KindRule<T> {
  /** For the API server; `self` is the value. */
  readonly cel: string;
  /** The fault and the fix. */
  readonly message: string;
  /** Same rule as `cel`, for objects of a folder: returns the invalid paths below the value. Absent: the schema rejects them. */
  readonly faults?: (value: T) => readonly (readonly (string | number)[])[];
  /** Message for such a path. @default message */
  readonly text?: string;
}

/** Adds rules to `schema`. */
export function withRules<T, S extends z.ZodType<T>>(
  schema: S & z.ZodType<T>,
  rules: readonly KindRule<T>[],
): S {
  return schema
    .superRefine((value, context) => {
      for (const { message, text = message, faults } of rules)
        for (const path of faults?.(value) ?? []) refuse(context, text, path);
    })
    .meta({ 'x-kubernetes-validations': rules.map(({ cel, message }) => ({ rule: cel, message })) });
}

/** `metav1.Condition[]`, a map by `type`. For `status.conditions`. */
export function conditionsSchema(): z.ZodType {
  return z
    .array(
      z.strictObject({
        type: z.string().max(316).describe('Name of the condition; Ready sums up'),
        status: z.enum(['True', 'False', 'Unknown']).describe('True, False or Unknown'),
        reason: z.string().min(1).max(1024).describe('Reason for programs: CamelCase, stable'),
        message: z.string().max(32768).describe('State and remedy, for people'),
        lastTransitionTime: z.string().meta({ format: 'date-time' }).describe('When status last changed'),
        observedGeneration: z
          .int()
          .min(0)
          .meta({ format: 'int64' })
          .describe('The metadata.generation that the condition describes')
          .optional(),
      }),
    )
    .max(32)
    .describe('Aspects of the state, one per type')
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] });
}

/** `metadata.generation` that a status describes. For `status.observedGeneration`. @param initial what the API server fills in */
export function observedGenerationSchema(initial?: number): z.ZodType {
  return z
    .int()
    .meta({ format: 'int64', ...(initial === undefined ? {} : { default: initial }) })
    .describe('The metadata.generation that this status describes')
    .optional();
}

/** A list with map semantics, keyed by `name`. */
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

/** Bounds of a selector, to limit the cost of CEL rules over it. */
const MAX_SELECTOR_LABELS = 16;
const MAX_SELECTOR_EXPRESSIONS = 16;
const MAX_SELECTOR_VALUES = 64;

// metav1.LabelSelector as a bounded schema.

const value = z
  .string()
  .max(63)
  .regex(/^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/);

/**
 * Without strict field validation (`--validate=false`, most clients), the API server drops unknown fields: `{matchlabels: …}`
 * would become `{}`, which selects everything. So unknown fields are preserved here, and `anyOf` rejects them.
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
 * Keeps a map complete. The API server drops a null value, such as `{team: null}` from a template, even under strict validation,
 * and the remaining `{}` selects everything. So the schema accepts null, and this rule rejects it.
 */
export const NO_NULLS: KindRule<unknown> = {
  cel: 'self.all(k, dyn(self[k]) != null)',
  message: 'a value must not be null: set it, or omit its key',
};

/**
 * `matchLabels` and `matchExpressions`, validated like the selectors of built-in kinds.
 *
 * @param all what an empty selector selects, for the error if it is missing
 */
export function labelSelectorSchema(all = 'of them') {
  return z
    .strictObject(
      {
        matchLabels: withRules(
          z
            .record(z.string().max(317), value.meta({ nullable: true }))
            .superRefine(atMost(MAX_SELECTOR_LABELS)),
          [NO_NULLS],
        )
          .meta({ maxProperties: MAX_SELECTOR_LABELS })
          .describe('Labels that an object must all have')
          .optional(),
        matchExpressions: z
          .array(
            z
              .strictObject({
                key: z.string().min(1).max(317).describe('Key of a label'),
                operator: z
                  .enum(['In', 'NotIn', 'Exists', 'DoesNotExist'])
                  .describe('Relation of the label to the values'),
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
                    message: 'In and NotIn require values, Exists and DoesNotExist must not have any',
                  },
                ],
              }),
          )
          .max(MAX_SELECTOR_EXPRESSIONS)
          .meta({ 'x-kubernetes-list-type': 'atomic' })
          .describe('Further label requirements, which must all match')
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

/** metav1.LabelSelector. */
export type SelectorInput = Frozen<z.output<ReturnType<typeof labelSelectorSchema>>>;

/** A fault that a schema cannot detect. */
export interface SectionProblem {
  /** Path below the section: `['agent', 'shape']`. */
  readonly path: readonly (string | number)[];
  /** Actual and expected value. */
  readonly text: string;
  /** Whether it is a fault only if set for the cluster itself: defaults need not fit every cluster. @default {false} */
  readonly ownOnly?: boolean;
}
