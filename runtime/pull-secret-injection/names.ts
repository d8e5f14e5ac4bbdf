/** Names of copies and sources, and the annotations on copies. */
import type { Ref } from '../engine/contract.ts';
import type { ProfileSource } from './kinds/profile.ts';

export const SOURCES_ANNOTATION = 'pullwright.dev/sources';
export const PROFILE_ANNOTATION = 'pullwright.dev/profile';
/** Set by the owner of a foreign Secret of the same name to let us take it over. */
export const ADOPT_ANNOTATION = 'pullwright.dev/adopt';

/** A reference to a Secret in the hosted cluster. */
export function secretRef(namespace: string, name: string): Ref {
  return { role: 'hosted', apiVersion: 'v1', kind: 'Secret', namespace, name };
}

/** A reference to the Namespace object. */
export function namespaceRef(name: string): Ref {
  return { role: 'hosted', apiVersion: 'v1', kind: 'Namespace', name };
}

/** `platform/quay-robot` */
export function sourceName(source: ProfileSource): string {
  return `${source.namespace}/${source.name}`;
}
