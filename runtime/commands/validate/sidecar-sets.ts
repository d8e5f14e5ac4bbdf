/** What a SidecarSet says that keeps its pull secrets from pods, before it is applied. */

import {
  readContent,
  SIDECAR_SET_API_VERSIONS,
  SOURCE_NAMESPACE_ANNOTATION,
} from '../../rules/injection/sidecar-set.ts';
import { NAMESPACE_NAME_LABEL, readSelector } from '../../rules/kubernetes/label-selector.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { isNamespaceName, isObjectName } from '../../rules/kubernetes/object-names.ts';
import { SELECTOR_SHAPE, shapeProblems } from '../../rules/kubernetes/shape.ts';
import { recordOf, scalarText } from '../../rules/record.ts';

export interface SidecarSetProblem {
  readonly severity: 'error' | 'warning';
  /** CamelCase, stable; where a condition says the same, the reason of that. */
  readonly code: string;
  readonly path: string;
  readonly message: string;
}

/** Nothing of it is injected, unless another set brings a container. */
export const NO_CONTAINERS = 'NoContainers';

type Raw = Readonly<Record<string, unknown>>;

const SELECTORS = ['selector', 'namespaceSelector', 'updateStrategy.selector'];
const ANNOTATION = `metadata.annotations["${SOURCE_NAMESPACE_ANNOTATION}"]`;

/**
 * Errors: what no API server with Kruise's definitions and webhook takes, or nobody could follow. Warnings: what is taken, and gives pods nothing.
 * A set that lists no pull secrets and says no source is none of our business.
 *
 * Source of the rule: Kruise's definition and webhook, and the conditions of the reconciler.
 *
 * @example
 * ```ts
 * import { sidecarSetProblems } from './sidecar-sets.ts';
 * import assert from 'node:assert/strict';
 *
 * const spec = { selector: { matchLabels: { app: 'web' } }, containers: [{ name: 'log' }], imagePullSecrets: [{ name: 'No_Name' }] };
 * const set = { apiVersion: 'apps.kruise.io/v1beta1', kind: 'SidecarSet', metadata: { name: 'log' }, spec };
 * assert.deepEqual(
 *   sidecarSetProblems(set).map(({ path, message }) => `${path}: ${message}`),
 *   ['spec.imagePullSecrets[0].name: "No_Name" is not the name of a Secret'],
 * );
 * ```
 */
export function sidecarSetProblems(object: KubeObject): readonly SidecarSetProblem[] {
  const spec = recordOf(object.spec);
  const from = object.metadata.annotations?.[SOURCE_NAMESPACE_ANNOTATION];
  const listed = spec['imagePullSecrets'] ?? [];
  if (from === undefined && Array.isArray(listed) && listed.length === 0) return [];
  return [
    ...versionProblems(object),
    ...SELECTORS.flatMap((path) => brokenSelector(spec, path)),
    ...selectionWarnings(spec),
    ...secretProblems(listed),
    ...sourceProblems(from, listed),
    ...containerWarnings(spec, listed),
  ];
}

function versionProblems({ apiVersion }: KubeObject): readonly SidecarSetProblem[] {
  if (SIDECAR_SET_API_VERSIONS.includes(apiVersion)) return [];
  const message = `is no version of a SidecarSet, expected ${SIDECAR_SET_API_VERSIONS.map((one) => `"${one}"`).join(' or ')}`;
  return [{ severity: 'error', code: 'WrongVersion', path: 'apiVersion', message }];
}

/** A field that is spelled wrong is dropped by the API server, and the selector then selects everything. */
function brokenSelector(spec: Raw, path: string): readonly SidecarSetProblem[] {
  const value = path.split('.').reduce<unknown>((at, key) => recordOf(at)[key], spec);
  const shape = shapeProblems(value, SELECTOR_SHAPE, `spec.${path}`).map((problem) => {
    const [at = '', ...rest] = problem.split(': ');
    return { path: at, message: rest.join(': ') };
  });
  const read = shape.length === 0 ? readSelector(value ?? {}) : undefined;
  const found = read?.ok === false ? [{ path: `spec.${path}`, message: read.problem }] : shape;
  return found.map((one) => ({ severity: 'error', code: 'SelectorInvalid', ...one }));
}

function selectionWarnings({ selector, namespace, namespaceSelector }: Raw): readonly SidecarSetProblem[] {
  const problems: SidecarSetProblem[] = [];
  if (isEmpty(selector))
    problems.push({
      severity: 'warning',
      code: 'SelectorEmpty',
      path: 'spec.selector',
      message: 'selects no pod: in a SidecarSet an absent or empty selector means none, not all',
    });
  if (typeof namespace === 'string' && namespace !== '' && namespaceSelector !== undefined)
    problems.push({
      severity: 'warning',
      code: 'NamespaceWins',
      path: 'spec.namespaceSelector',
      message: `counts for nothing beside spec.namespace; leave spec.namespace out and select by ${NAMESPACE_NAME_LABEL}`,
    });
  return problems;
}

function isEmpty(selector: unknown): boolean {
  const read = readSelector(selector ?? {});
  return (
    read.ok &&
    read.requirements.length === 0 &&
    shapeProblems(selector, SELECTOR_SHAPE, 'spec.selector').length === 0
  );
}

function secretProblems(listed: unknown): readonly SidecarSetProblem[] {
  const path = 'spec.imagePullSecrets';
  const error = { severity: 'error', code: 'SecretNameInvalid' } as const;
  if (!Array.isArray(listed)) return [{ ...error, path, message: 'must be a list' }];
  return listed.flatMap((entry: unknown, at): readonly SidecarSetProblem[] => {
    const { name } = recordOf(entry);
    if (isObjectName(name)) return [];
    const what = typeof name === 'string' ? JSON.stringify(name.slice(0, 80)) : 'what is there';
    return [{ ...error, path: `${path}[${at}].name`, message: `${what} is not the name of a Secret` }];
  });
}

function sourceProblems(from: unknown, listed: unknown): readonly SidecarSetProblem[] {
  if (from === undefined) return [];
  const at = { path: ANNOTATION } as const;
  if (!isNamespaceName(from)) {
    const message = `${JSON.stringify(scalarText(from).slice(0, 80))} is not the name of a namespace`;
    return [{ severity: 'error', code: 'SourceNamespaceInvalid', ...at, message }];
  }
  if (!Array.isArray(listed) || listed.length > 0) return [];
  const message = 'brings nothing: spec.imagePullSecrets lists no Secret';
  return [{ severity: 'warning', code: 'NoSecretListed', ...at, message }];
}

function containerWarnings(spec: Raw, listed: unknown): readonly SidecarSetProblem[] {
  if (readContent(spec).containers > 0 || !Array.isArray(listed) || listed.length === 0) return [];
  const message =
    'no container: pull secrets are injected only into pods that a SidecarSet brings a container to; add one, set withoutContainers in the fleet, or use a PullSecretProfile';
  return [{ severity: 'warning', code: NO_CONTAINERS, path: 'spec.containers', message }];
}
