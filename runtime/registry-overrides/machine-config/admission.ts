/**
 * What the API server refuses of mirror sets and of the Image object, so that it never comes to the operator: an object that is
 * declared in a file, and that breaks its schema, is not in the cluster. Objects that a cluster has may be older than the schema.
 *
 * Source of the rule: the CRDs of ImageDigestMirrorSet, ImageTagMirrorSet, ImageContentSourcePolicy (types only) and Image
 * (`spec.registrySources`), recorded as `admitted` in test/conformance/cases/mco-registries.
 */
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { RuleOrigin } from '../../core/mirrors/resolve.ts';
import { isRecord, recordOf, textOf } from '../../core/record.ts';
import {
  isOf,
  MIRROR_SET_KINDS,
  type MirrorProblem,
  type MirrorSetKind,
  mirrorProblem,
  problem,
  sourceProblem,
} from '../mirror-sets/collect.ts';
import { IMAGE_CONFIG } from './input.ts';

export interface SchemaFault {
  /** CamelCase, stable. */
  readonly code: string;
  readonly origin: RuleOrigin;
  /** What is there, and what must be. */
  readonly message: string;
}

/**
 * All faults of `objects`; objects of other kinds have none.
 */
export function schemaFaults(objects: readonly KubeObject[]): readonly SchemaFault[] {
  return objects.flatMap((object) => {
    const set = MIRROR_SET_KINDS.find((one) => isOf(object, one));
    if (set !== undefined) return setFaults(object, set);
    return isOf(object, IMAGE_CONFIG) ? imageFaults(object) : [];
  });
}

/** Objects that are in the cluster, or can come into it; and why the others cannot. */
export interface Admitted {
  readonly objects: readonly KubeObject[];
  readonly problems: readonly MirrorProblem[];
  /** `Kind/name` of each ignored object. */
  readonly refused: readonly string[];
}

/** Drops rejected objects that come from files. An object read from a cluster stays, whatever its present schema. */
export function admit(objects: readonly KubeObject[]): Admitted {
  const faults = schemaFaults(objects.filter(({ metadata }) => metadata.creationTimestamp === undefined));
  if (faults.length === 0) return { objects, problems: [], refused: [] };
  const refused = new Set(faults.map(({ origin }) => `${origin.kind}/${origin.name}`));
  return {
    objects: objects.filter(
      ({ kind, metadata }) =>
        metadata.creationTimestamp !== undefined || !refused.has(`${kind}/${metadata.name}`),
    ),
    problems: faults.map(schemaProblem),
    refused: [...refused],
  };
}

/** A fault as a problem of its object. */
export function schemaProblem({ code, origin, message }: SchemaFault): MirrorProblem {
  return problem(code, origin, `${message}; the API server refuses the object`);
}

type Place = (path: string, code: string, message: string) => SchemaFault;

function placeIn({ kind, metadata }: KubeObject): Place {
  return (path, code, message) => ({ code, origin: { kind, name: metadata.name, path }, message });
}

function setFaults(object: KubeObject, set: MirrorSetKind): readonly SchemaFault[] {
  const fault = placeIn(object);
  if (!isRecord(object.spec)) return [fault('spec', 'NoSpec', 'is missing: must be a map')];
  const list = object.spec[set.list];
  if (list === undefined) return [];
  const path = `spec.${set.list}`;
  if (!Array.isArray(list)) return [fault(path, 'NotAList', 'is no list: must be a list of sources')];
  const hasFormats = set.kind !== 'ImageContentSourcePolicy';
  return (list as readonly unknown[]).flatMap((entry, at) =>
    entryFaults(entry, `${path}[${at}]`, fault, hasFormats),
  );
}

function entryFaults(
  entry: unknown,
  path: string,
  fault: Place,
  hasFormats: boolean,
): readonly SchemaFault[] {
  const { source, mirrors = [], mirrorSourcePolicy: policy } = recordOf(entry);
  const wrong = typeof source !== 'string' ? 'it is missing' : hasFormats ? sourceProblem(source) : undefined;
  const isPolicy = policy === undefined || POLICIES.includes(textOf(policy));
  return [
    ...(wrong === undefined ? [] : [fault(path, 'SourceInvalid', `has no usable source: ${wrong}`)]),
    ...mirrorFaults(mirrors, path, fault, hasFormats),
    ...(isPolicy || !hasFormats
      ? []
      : [
          fault(
            `${path}.mirrorSourcePolicy`,
            'PolicyInvalid',
            `has the value ${JSON.stringify(policy)}: must be one of ${POLICIES.join(', ')}`,
          ),
        ]),
  ];
}

const POLICIES: readonly string[] = ['NeverContactSource', 'AllowContactingSource'];

function mirrorFaults(
  mirrors: unknown,
  path: string,
  fault: Place,
  hasFormats: boolean,
): readonly SchemaFault[] {
  if (!Array.isArray(mirrors))
    return [fault(`${path}.mirrors`, 'NotAList', 'is no list: must be a list of mirrors')];
  const seen = new Set<unknown>();
  return (mirrors as readonly unknown[]).flatMap((mirror, at) => {
    const place = `${path}.mirrors[${at}]`;
    if (typeof mirror !== 'string') return [fault(place, 'MirrorInvalid', 'is no text: must be a mirror')];
    if (!hasFormats) return [];
    const wrong = mirrorProblem(mirror);
    if (wrong !== undefined) return [fault(place, 'MirrorInvalid', `cannot be used as mirror: ${wrong}`)];
    if (!seen.has(mirror)) {
      seen.add(mirror);
      return [];
    }
    return [fault(place, 'DuplicateMirror', `lists the mirror "${mirror}" twice: must be there once`)];
  });
}

/** Lists of scopes. The list of search registries has a schema of its own. */
const SCOPE_LISTS = ['insecureRegistries', 'blockedRegistries', 'allowedRegistries'] as const;
const SEARCH_LIST = 'containerRuntimeSearchRegistries';
const MOST_SCOPES = 1024;
const LONGEST_SCOPE = 256;

function imageFaults(object: KubeObject): readonly SchemaFault[] {
  const fault = placeIn(object);
  const path = 'spec.registrySources';
  const sources = recordOf(recordOf(object.spec)['registrySources']);
  const both = sources['blockedRegistries'] !== undefined && sources['allowedRegistries'] !== undefined;
  const lists = [...SCOPE_LISTS, SEARCH_LIST].flatMap((name) => {
    const list = sources[name];
    if (list === undefined) return [];
    const place = `${path}.${name}`;
    if (!Array.isArray(list)) return [fault(place, 'NotAList', 'is no list: must be a list of registries')];
    return name === SEARCH_LIST ? searchFaults(list, place, fault) : scopeFaults(list, place, fault);
  });
  if (!both) return lists;
  const message = 'has blockedRegistries and allowedRegistries, be they empty: must have only one of them';
  return [fault(path, 'AllowedAndBlocked', message), ...lists];
}

function scopeFaults(list: readonly unknown[], path: string, fault: Place): readonly SchemaFault[] {
  const many =
    list.length > MOST_SCOPES
      ? [fault(path, 'TooMany', `has ${list.length} registries: must have at most ${MOST_SCOPES}`)]
      : [];
  const each = list.flatMap((scope, at) => {
    const wrong = typeof scope === 'string' ? scopeProblem(scope) : 'it is no text';
    return wrong === undefined ? [] : [fault(`${path}[${at}]`, 'ScopeInvalid', `is no registry: ${wrong}`)];
  });
  return [...many, ...each];
}

function scopeProblem(scope: string): string | undefined {
  if (scope.length > LONGEST_SCOPE)
    return `it has ${scope.length} characters, and may have at most ${LONGEST_SCOPE}`;
  return sourceProblem(scope);
}

function searchFaults(list: readonly unknown[], path: string, fault: Place): readonly SchemaFault[] {
  if (list.length === 0) return [fault(path, 'SearchEmpty', 'is empty: must have a registry, or be omitted')];
  const seen = new Set<unknown>();
  return list.flatMap((name, at) => {
    const place = `${path}[${at}]`;
    if (typeof name !== 'string') return [fault(place, 'ScopeInvalid', 'is no text: must be a registry')];
    if (!seen.has(name)) {
      seen.add(name);
      return [];
    }
    return [fault(place, 'DuplicateRegistry', `lists "${name}" twice: must be there once`)];
  });
}
