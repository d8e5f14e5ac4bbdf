/**
 * emberstack/kubernetes-reflector: annotations on a Secret allow copies (`reflection-allowed`), make them
 * (`reflection-auto-enabled`), and ask for one (`reflects`). Lists hold names and regular expressions; an empty one means all.
 */

import type { KubeObject, SecretObject } from '../kubernetes/object.ts';
import { annotation, askedCopies, copiesOf, dropped, secretsIn, together } from './copies.ts';
import { byName, namespaceNames, namespacesMatching } from './namespaces.ts';
import type { ImportedPart } from './types.ts';
import { subjectOf } from './types.ts';

const PREFIX = 'reflector.v1.k8s.emberstack.com/';

/** Profiles and grants for Secrets that are reflected. */
export function importReflector(objects: readonly KubeObject[]): ImportedPart {
  const secrets = secretsIn(objects);
  const known = namespaceNames(objects);
  const pushed = secrets
    .filter((secret) => isTrue(secret, 'reflection-auto-enabled') && !isCopy(secret))
    .map((secret) => {
      if (!isTrue(secret, 'reflection-allowed'))
        return {
          notes: [
            dropped(subjectOf(secret), 'reflection-allowed is not "true": reflector makes no copies either'),
          ],
        };
      const lists = ['reflection-allowed-namespaces', 'reflection-auto-namespaces'];
      const from = secret.metadata.namespace ?? 'default';
      return copiesOf(
        secret,
        namespacesMatching(
          lists.map((list) => annotation(secret, PREFIX + list) ?? ''),
          { from, known },
        ),
      );
    });
  return together([...pushed, ...pulled(secrets)]);
}

/** Copies that reflector made by itself carry this mark; their source says it all. */
function isCopy(secret: SecretObject): boolean {
  return isTrue(secret, 'auto-reflects');
}

function isTrue(secret: SecretObject, key: string): boolean {
  return annotation(secret, PREFIX + key)?.toLowerCase() === 'true';
}

function pulled(secrets: readonly SecretObject[]): readonly ImportedPart[] {
  const asking = secrets.filter((secret) => !isCopy(secret));
  return [...askedCopies(asking, `${PREFIX}reflects`)].map(([source, copies]) => {
    const found = secrets.find(({ metadata }) => `${metadata.namespace}/${metadata.name}` === source);
    const allowed = found !== undefined && isTrue(found, 'reflection-allowed');
    if (!allowed)
      return {
        notes: copies.map((copy) =>
          dropped(subjectOf(copy), `reflects "${source}", which is not in the dump or does not allow it`),
        ),
      };
    const fitting = copies.filter(({ metadata }) => metadata.name === found.metadata.name);
    const others = copies.filter(({ metadata }) => metadata.name !== found.metadata.name);
    const targets = fitting.map(({ metadata }) => metadata.namespace ?? 'default');
    const lists = [annotation(found, `${PREFIX}reflection-allowed-namespaces`) ?? ''];
    const from = found.metadata.namespace ?? 'default';
    const names = targets.filter(
      (one) => namespacesMatching([...lists, one], { from, known: targets }) !== undefined,
    );
    return together([
      ...(names.length === 0 ? [] : [copiesOf(found, byName(names))]),
      {
        notes: others.map((copy) =>
          dropped(
            subjectOf(copy),
            `is a copy under another name than "${source}": write a profile with that name`,
          ),
        ),
      },
    ]);
  });
}
