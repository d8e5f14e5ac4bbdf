/**
 * What the readers of our kinds have in common: they refuse what the API server refuses under strict field validation, because
 * manifests of a folder were seen by no API server, and a slip there must not widen what is selected.
 *
 * Source of the rule: `fieldValidation: Strict` of kube-apiserver, and the bounds that the definitions of the kinds state.
 */
import { type LabelRequirement, readSelector } from '../kubernetes/label-selector.ts';
import { type KubeObject, LAST_APPLIED } from '../kubernetes/object.ts';
import { type Shape, shapeProblems } from '../kubernetes/shape.ts';
import { recordOf } from '../record.ts';

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
 *
 * @example
 * ```ts
 * import { ownObjectProblems } from './own-kind.ts';
 * import assert from 'node:assert/strict';
 *
 * const object = { apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullSecretProfile', metadata: { name: 'a' }, sepc: {} };
 * assert.deepEqual(ownObjectProblems(object, { fields: {} }), [
 *   'sepc: unknown field; must be one of "apiVersion", "kind", "metadata", "spec", "status"',
 * ]);
 * ```
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
 *
 * @example
 * ```ts
 * import { LAST_APPLIED } from '../kubernetes/object.ts';
 * import { droppedFieldProblems } from './own-kind.ts';
 * import assert from 'node:assert/strict';
 *
 * const annotations = { [LAST_APPLIED]: '{"spec":{"suspended":true}}' };
 * const object = { apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullSecretProfile', metadata: { name: 'a', annotations }, spec: {} };
 * assert.match(droppedFieldProblems(object, { fields: { suspend: 'boolean' } })[0] ?? '', /^spec\.suspended: unknown field/);
 * ```
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
