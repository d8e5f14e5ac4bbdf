/**
 * CustomResourceDefinitions from zod schemas: one definition gives the TypeScript type, the check of input and the
 * structural schema that the API server holds.
 *
 * What JSON Schema cannot say goes into `.meta()`: `x-kubernetes-validations` (CEL), `x-kubernetes-list-type`,
 * `x-kubernetes-list-map-keys`, `x-kubernetes-int-or-string`, `x-kubernetes-preserve-unknown-fields`, `description`,
 * `format`. Put `.max()` on every text and list, so that the cost of CEL rules stays bounded.
 */

import { z } from 'zod';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { type CrdVersionObject, kubernetesObject } from './kubernetes.ts';

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
  /** @default {true} */
  readonly served?: boolean;
  /** Exactly one version is stored. @default {true} */
  readonly storage?: boolean;
  /** Shown as a warning to whoever uses this version. */
  readonly deprecationWarning?: string;
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
 * @example
 * ```ts
 * import { crd } from './crd.ts';
 * import { z } from 'zod';
 * import assert from 'node:assert/strict';
 *
 * const object = crd({
 *   group: 'pullwright.dev',
 *   kind: 'Example',
 *   scope: 'Namespaced',
 *   versions: [{ name: 'v1alpha1', schema: z.strictObject({ spec: z.strictObject({ image: z.string().max(512) }) }) }],
 * });
 * assert.equal(object.metadata.name, 'examples.pullwright.dev');
 * ```
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
    served: version.served ?? true,
    storage: version.storage ?? true,
    ...(version.deprecationWarning === undefined
      ? {}
      : { deprecated: true, deprecationWarning: version.deprecationWarning }),
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
