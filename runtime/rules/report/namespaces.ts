/** Namespaces with their pull secrets, what they grant, and which of their Secrets are copies. */
import { parseDockerConfig } from '../docker-config/docker-config.ts';
import { pullSecretKey, pullSecretSource } from '../docker-config/secret-text.ts';
import { GRANT_KIND, readPullSecretGrant } from '../injection/pull-secret-grant.ts';
import { isSecret, type KubeObject, type SecretObject } from '../kubernetes/object.ts';
import type { ReportNamespace, ReportPull, ReportSecret } from './types.ts';
import { worstOf } from './verdict.ts';

/** Who brings a Secret, and of which it is made; undefined for one that is no copy. */
export type CopyOf = (secret: SecretObject) => ReportSecret['copy'];

/** Only namespaces that have something to say: a pull secret, a grant, or a workload. */
export function reportNamespaces(
  objects: readonly KubeObject[],
  pulls: readonly ReportPull[],
  copyOf: CopyOf,
): readonly ReportNamespace[] {
  const found = new Map<string, Parts>();
  const partsOf = (name: string): Parts => {
    const parts = found.get(name) ?? { secrets: [], grants: [], pulls: [] };
    found.set(name, parts);
    return parts;
  };
  for (const object of objects) {
    const { namespace } = object.metadata;
    if (namespace === undefined) continue;
    if (isSecret(object) && pullSecretKey(object.type) !== undefined)
      partsOf(namespace).secrets.push(secretOf(object, copyOf));
    if (object.kind === GRANT_KIND) partsOf(namespace).grants.push(grantOf(object));
  }
  for (const pull of pulls) partsOf(pull.namespace).pulls.push(pull);
  return [...found]
    .map(
      ([name, { pulls: own, ...parts }]): ReportNamespace => ({
        name,
        ...parts,
        pulls: own.length,
        verdict: worstOf([...own.map(({ verdict }) => verdict), ...parts.secrets.map(verdictOf)], 'ok'),
      }),
    )
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

interface Parts {
  readonly secrets: ReportSecret[];
  readonly grants: ReportNamespace['grants'][number][];
  readonly pulls: ReportPull[];
}

function verdictOf({ fault }: ReportSecret): 'ok' | 'attention' {
  return fault === undefined ? 'ok' : 'attention';
}

function secretOf(object: SecretObject, copyOf: CopyOf): ReportSecret {
  const copy = copyOf(object);
  const base = {
    name: object.metadata.name,
    type: object.type ?? 'Opaque',
    ...(copy === undefined ? {} : { copy }),
  };
  const source = pullSecretSource(object);
  if (source === undefined) return { ...base, keys: [], fault: 'has no data under the key of its type' };
  const parsed = parseDockerConfig(source.text, source.format === 'dockercfg' ? 'dockercfg' : 'config.json');
  if (!parsed.ok) return { ...base, keys: [], fault: parsed.problem.message };
  const { entries, kubeletFault } = parsed.config;
  const bad = entries.find(({ fault }) => fault !== undefined);
  const fault =
    bad?.fault === undefined
      ? kubeletFault === undefined
        ? undefined
        : 'the kubelet cannot read it'
      : `entry "${bad.key.written}" ${bad.fault.message}`;
  return {
    ...base,
    keys: entries.map(({ key }) => key.written),
    ...(fault === undefined ? {} : { fault }),
  };
}

function grantOf(object: KubeObject): Parts['grants'][number] {
  const { name, secrets, profiles, to, problems } = readPullSecretGrant(object);
  return {
    name,
    secrets,
    profiles,
    to: [...to.patterns, ...(to.selectors.length === 0 ? [] : ['namespaces with the labels that it names'])],
    problems,
  };
}
