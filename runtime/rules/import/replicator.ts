/**
 * mittwald/kubernetes-replicator: `replicate-to` (names and regular expressions) and `replicate-to-matching` (a label selector of
 * namespaces) push a Secret; `replicate-from` pulls one, when `replication-allowed` and `replication-allowed-namespaces` let it.
 */

import { parseSelectorText, selects } from '../kubernetes/label-selector.ts';
import type { KubeObject, SecretObject } from '../kubernetes/object.ts';
import { annotation, askedCopies, copiesOf, dropped, secretsIn, together } from './copies.ts';
import { byName, namespaceNames, namespacesMatching } from './namespaces.ts';
import type { ImportedPart } from './types.ts';
import { subjectOf } from './types.ts';

const PREFIX = 'replicator.v1.mittwald.de/';

/** Profiles and grants for Secrets that are replicated. */
export function importReplicator(objects: readonly KubeObject[]): ImportedPart {
  const secrets = secretsIn(objects);
  const known = namespaceNames(objects);
  const pushed = secrets.flatMap((secret) => [...byPattern(secret, known), ...byLabels(secret, objects)]);
  return together([...pushed, ...pulled(secrets, known)]);
}

function byPattern(secret: SecretObject, known: readonly string[]): readonly ImportedPart[] {
  const to = annotation(secret, `${PREFIX}replicate-to`);
  if (to === undefined || to.trim() === '') return [];
  const from = secret.metadata.namespace ?? 'default';
  return [copiesOf(secret, namespacesMatching([to], { from, known }))];
}

/** The profile selects by the same labels; the grant names the namespaces of today, since labels are not trusted by themselves. */
function byLabels(secret: SecretObject, objects: readonly KubeObject[]): readonly ImportedPart[] {
  const text = annotation(secret, `${PREFIX}replicate-to-matching`);
  if (text === undefined) return [];
  const read = parseSelectorText(text);
  if (!read.ok)
    return [{ notes: [dropped(subjectOf(secret), `replicate-to-matching "${text}": ${read.problem}`)] }];
  const own = secret.metadata.namespace;
  const names = objects
    .filter(({ kind, metadata }) => kind === 'Namespace' && metadata.name !== own)
    .filter(({ metadata }) => selects(read.requirements, metadata.labels ?? {}))
    .map(({ metadata }) => metadata.name);
  if (names.length === 0) return [copiesOf(secret, undefined)];
  const changed = `the grant names the namespaces that carry the labels today (${names.join(', ')}): with trustedLabelKeys it can be a selector`;
  const matchExpressions = read.requirements.map(({ key, operator, values }) => ({
    key,
    operator,
    ...(values === undefined || values.length === 0 ? {} : { values }),
  }));
  return [copiesOf(secret, { ...byName(names), selector: { matchExpressions }, changed })];
}

function pulled(secrets: readonly SecretObject[], known: readonly string[]): readonly ImportedPart[] {
  return [...askedCopies(secrets, `${PREFIX}replicate-from`)].map(([source, copies]) => {
    const found = secrets.find(({ metadata }) => `${metadata.namespace}/${metadata.name}` === source);
    if (found === undefined)
      return {
        notes: copies.map((copy) =>
          dropped(subjectOf(copy), `replicates "${source}", which is not in the dump`),
        ),
      };
    const [fitting, others] = [true, false].map((same) =>
      copies.filter(({ metadata }) => (metadata.name === found.metadata.name) === same),
    );
    const names = (fitting ?? [])
      .map(({ metadata }) => metadata.namespace ?? 'default')
      .filter((name) => mayReplicate(found, name, known));
    const refused = (fitting ?? []).filter(
      ({ metadata }) => !names.includes(metadata.namespace ?? 'default'),
    );
    return together([
      ...(names.length === 0 ? [] : [copiesOf(found, byName(names))]),
      {
        notes: refused.map((copy) =>
          dropped(subjectOf(copy), `"${source}" does not allow it to be replicated here`),
        ),
      },
      {
        notes: (others ?? []).map((copy) =>
          dropped(
            subjectOf(copy),
            `is a copy under another name than "${source}": write a profile with that name`,
          ),
        ),
      },
    ]);
  });
}

function mayReplicate(source: SecretObject, namespace: string, known: readonly string[]): boolean {
  if (annotation(source, `${PREFIX}replication-allowed`)?.toLowerCase() !== 'true') return false;
  const list = annotation(source, `${PREFIX}replication-allowed-namespaces`) ?? '';
  const from = source.metadata.namespace ?? 'default';
  return namespacesMatching([list, namespace], { from, known: [...known, namespace] }) !== undefined;
}
