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
  return terms(selector).every(({ key, value, isNot }) =>
    value === undefined ? key in labels : (labels[key] === value) !== isNot,
  );
}

/** Only what reads use: `metadata.name`, `metadata.namespace` and `type`. */
function matchesFields(selector: string | undefined, object: KubeObject): boolean {
  if (selector === undefined) return true;
  return terms(selector).every(({ key, value }) => {
    const found = key
      .split('.')
      .reduce<unknown>(
        (node, step) =>
          typeof node === 'object' && node !== null ? (node as Record<string, unknown>)[step] : undefined,
        object,
      );
    return found === value;
  });
}

interface Term {
  readonly key: string;
  /** Undefined: whatever it is. */
  readonly value: string | undefined;
  readonly isNot: boolean;
}

/** The fields of the object itself that `selector` says: a server that is asked for metadata alone has judged them, and does not send them. */
export function impliedFields(selector: string | undefined): Readonly<Record<string, string>> {
  const known = selector === undefined ? [] : terms(selector);
  return Object.fromEntries(
    known.flatMap(({ key, value }) => (key.includes('.') || value === undefined ? [] : [[key, value]])),
  );
}

/** Selectors are those of the reads: few, and asked for with every look at an object. */
const knownTerms = new Map<string, readonly Term[]>();

/** Terms `a=b,c,d!=e`, as reads use them; `c` alone means: is there. */
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
      const [key = '', value] = term.split(/!?=+/, 2);
      return { key: key.trim(), value: value?.trim(), isNot: term.includes('!=') };
    });
}
