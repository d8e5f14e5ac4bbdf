/** Copies of a Secret in other namespaces, as a profile and a grant: what reflector and replicator have in common. */

import { pullSecretKey } from '../docker-config/secret-text.ts';
import { isSecret, type KubeObject, type SecretObject } from '../kubernetes/object.ts';
import type { NamespaceTarget } from './namespaces.ts';
import type { ImportedPart, ImportNote } from './types.ts';
import { subjectOf } from './types.ts';

/** The text of an annotation; undefined when it is not there, or not shown. */
export function annotation({ metadata }: KubeObject, key: string): string | undefined {
  const value = metadata.annotations?.[key];
  return typeof value === 'string' ? value : undefined;
}

/** Secrets among `objects`. */
export function secretsIn(objects: readonly KubeObject[]): readonly SecretObject[] {
  return objects.filter(isSecret);
}

/** Copies of `secret` to `target`, under its own name. */
export function copiesOf(secret: SecretObject, target: NamespaceTarget | undefined): ImportedPart {
  const subject = subjectOf(secret);
  const { name, namespace = 'default' } = secret.metadata;
  if (pullSecretKey(secret.type) === undefined)
    return {
      notes: [dropped(subject, `is of type "${secret.type ?? 'Opaque'}": only pull secrets are copied`)],
    };
  if (target === undefined)
    return { notes: [dropped(subject, 'its patterns match no namespace of the dump: dump Namespaces too')] };
  const spec = {
    namespaceSelector: target.selector,
    mode: 'Distribute' as const,
    secrets: [{ name, sources: [{ namespace, name }] }],
  };
  const note: ImportNote =
    target.changed === undefined
      ? { outcome: 'carried', subject, message: `profile ${name}` }
      : { outcome: 'changed', subject, message: `profile ${name}: ${target.changed}` };
  return {
    profiles: [{ name, spec }],
    grants: [{ namespace, name, to: target.grant }],
    notes: [note],
  };
}

export function dropped(subject: string, message: string): ImportNote {
  return { outcome: 'dropped', subject, message };
}

/** All of `parts` as one. */
export function together(parts: readonly ImportedPart[]): ImportedPart {
  return {
    profiles: parts.flatMap((part) => part.profiles ?? []),
    grants: parts.flatMap((part) => part.grants ?? []),
    notes: parts.flatMap((part) => part.notes),
  };
}

/**
 * Secrets that ask for a copy of another one by an annotation `<namespace>/<name>`, grouped by what they ask for.
 *
 * @returns target namespaces by source and by the name of the copy
 */
export function askedCopies(
  secrets: readonly SecretObject[],
  key: string,
): ReadonlyMap<string, readonly SecretObject[]> {
  const asked = new Map<string, SecretObject[]>();
  for (const secret of secrets) {
    const source = annotation(secret, key);
    if (source === undefined) continue;
    asked.set(source, [...(asked.get(source) ?? []), secret]);
  }
  return asked;
}
