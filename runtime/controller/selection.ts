/** Which objects a {@link Read} covers. A reconciler sees nothing else, offline as in a cluster. */
import type { KubeObject } from '../rules/kubernetes/object.ts';
import {
  CONTROL_PLANE_NAMESPACE,
  HOSTED_CLUSTER_NAME,
  HOSTED_CLUSTER_NAMESPACE,
  type Read,
  type Scope,
} from './contract.ts';

/** The namespace that `read` means in `scope`, or undefined for all. */
export function readNamespace(read: Read, scope: Scope): string | undefined {
  if (read.namespace === CONTROL_PLANE_NAMESPACE) return scope.controlPlaneNamespace;
  // A stand-alone cluster has no HostedCluster: the name of no namespace, so that nothing is covered.
  if (read.namespace === HOSTED_CLUSTER_NAMESPACE) return scope.hostedCluster?.namespace ?? '-';
  return read.namespace;
}

/** The name that `read` means in `scope`, or undefined for all. */
export function readName(read: Read, scope: Scope): string | undefined {
  return read.name?.replace(HOSTED_CLUSTER_NAME, scope.hostedCluster?.name ?? '-');
}

/** Whether `object`, of the cluster of `read.role`, is covered by `read`. */
export function covers(read: Read, object: KubeObject, scope: Scope): boolean {
  if (read.apiVersion !== object.apiVersion || read.kind !== object.kind) return false;
  const namespace = readNamespace(read, scope);
  if (namespace !== undefined && namespace !== (object.metadata.namespace ?? '')) return false;
  if (read.name !== undefined && readName(read, scope) !== object.metadata.name) return false;
  return matchesSelectors(read, object);
}

/** Whether the selectors of `read` select `object`. */
export function matchesSelectors(
  read: Pick<Read, 'labelSelector' | 'fieldSelector'>,
  object: KubeObject,
): boolean {
  return matchesLabels(read.labelSelector, object) && matchesFields(read.fieldSelector, object);
}

function matchesLabels(selector: string | undefined, object: KubeObject): boolean {
  if (selector === undefined) return true;
  const labels = object.metadata.labels ?? {};
  return terms(selector).every(([key, value]) =>
    value === undefined ? key in labels : labels[key] === value,
  );
}

/** Only what reads use: `metadata.name`, `metadata.namespace` and `type`. */
function matchesFields(selector: string | undefined, object: KubeObject): boolean {
  if (selector === undefined) return true;
  return terms(selector).every(([path, value]) => {
    const found = path
      .split('.')
      .reduce<unknown>(
        (node, key) =>
          typeof node === 'object' && node !== null ? (node as Record<string, unknown>)[key] : undefined,
        object,
      );
    return found === value;
  });
}

type Term = readonly [key: string, value: string | undefined];

/** Selectors are those of the reads: few, and asked for with every look at an object. */
const knownTerms = new Map<string, readonly Term[]>();

/** Equality terms `a=b,c`, as reads use them; `c` alone means: is there. */
function terms(selector: string): readonly Term[] {
  const known = knownTerms.get(selector) ?? readTerms(selector);
  knownTerms.set(selector, known);
  return known;
}

function readTerms(selector: string): readonly Term[] {
  return selector
    .split(',')
    .filter((term) => term !== '')
    .map((term) => {
      const at = term.indexOf('=');
      return at < 0
        ? ([term.trim(), undefined] as const)
        : ([term.slice(0, at).trim(), term.slice(term.lastIndexOf('=') + 1).trim()] as const);
    });
}
