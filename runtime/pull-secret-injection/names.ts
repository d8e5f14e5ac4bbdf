/** How copies and sources are named, and what is written on a copy. */
import type { Ref } from '../engine/contract.ts';
import type { ProfileSource } from './kinds/profile.ts';

export const SOURCES_ANNOTATION = 'pullwright.dev/sources';
export const PROFILE_ANNOTATION = 'pullwright.dev/profile';
/** On a foreign Secret of the same name: its owner lets us take it over. */
export const ADOPT_ANNOTATION = 'pullwright.dev/adopt';

/** A reference to a Secret of the hosted cluster. */
export function secretRef(namespace: string, name: string): Ref {
  return { role: 'hosted', apiVersion: 'v1', kind: 'Secret', namespace, name };
}

/** The Namespace object of a name. */
export function namespaceRef(name: string): Ref {
  return { role: 'hosted', apiVersion: 'v1', kind: 'Namespace', name };
}

/** `platform/quay-robot` */
export function sourceName(source: ProfileSource): string {
  return `${source.namespace}/${source.name}`;
}
