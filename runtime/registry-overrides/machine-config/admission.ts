/**
 * Mirror sets and Image objects that the API server rejects, so that the operator never reads them: an object in a file that
 * violates its schema will not be in the cluster. Objects read from a cluster may be older than the schema.
 *
 * Source of the rule: the CRDs of ImageDigestMirrorSet, ImageTagMirrorSet, ImageContentSourcePolicy (types only) and Image
 * (`spec.registrySources`), recorded as `admitted` in test/conformance/cases/mco-registries.
 */
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { isRecord, recordOf, textOf } from '../../core/record.ts';
import {
  isOf,
  MIRROR_SET_KINDS,
  type MirrorProblem,
  type MirrorSetKind,
  mirrorProblem,
  problem,
  type RegistriesFault,
  sourceProblem,
} from '../mirror-sets/collect.ts';
import { IMAGE_CONFIG } from './input.ts';

/** A violation of a schema. */
type SchemaFault = Omit<RegistriesFault, 'text'>;

/** All faults of `objects`; objects of other kinds have none. */
export function schemaFaults(objects: readonly KubeObject[]): readonly SchemaFault[] {
  return objects.flatMap((object) => {
    const set = MIRROR_SET_KINDS.find((one) => isOf(object, one));
    if (set !== undefined) return setFaults(object, set);
    return isOf(object, IMAGE_CONFIG) ? imageFaults(object) : [];
  });
}

/**
 * Drops invalid objects from files. Keeps objects read from a cluster, regardless of the current schema.
 *
 * @returns `objects` that the API server accepts, `Kind/name` of those that it rejects in `refused`, and why in `problems`
 */
export function admit(objects: readonly KubeObject[]) {
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
  return problem(code, origin, `${message}; the API server rejects the object`);
}

type Place = (path: string, code: string, message: string) => SchemaFault;

function placeIn({ kind, metadata }: KubeObject): Place {
  return (path, code, message) => ({ code, origin: { kind, name: metadata.name, path }, message });
}

/** Faults of the items of a list; `repeats`: whether the item is a duplicate. */
function listFaults(
  list: unknown,
  [path, of]: readonly [path: string, of: string],
  fault: Place,
  itemFaults: (item: unknown, place: string, repeats: boolean) => readonly SchemaFault[],
): readonly SchemaFault[] {
  if (!Array.isArray(list)) return [fault(path, 'NotAList', `must be a list of ${of}`)];
  const seen = new Set<unknown>();
  return list.flatMap((item: unknown, at) =>
    itemFaults(item, `${path}[${at}]`, seen.has(item) || !seen.add(item)),
  );
}

function setFaults(object: KubeObject, set: MirrorSetKind): readonly SchemaFault[] {
  const fault = placeIn(object);
  if (!isRecord(object.spec)) return [fault('spec', 'NoSpec', 'is missing: must be a map')];
  const list = object.spec[set.list];
  if (list === undefined) return [];
  const hasFormats = set.kind !== 'ImageContentSourcePolicy';
  return listFaults(list, [`spec.${set.list}`, 'sources'], fault, (entry, path) =>
    entryFaults(entry, path, fault, hasFormats),
  );
}

function entryFaults(entry: unknown, path: string, fault: Place, hasFormats: boolean) {
  const { source, mirrors = [], mirrorSourcePolicy: policy } = recordOf(entry);
  const wrong = typeof source !== 'string' ? 'it is missing' : hasFormats ? sourceProblem(source) : undefined;
  const isPolicy = !hasFormats || policy === undefined || POLICIES.includes(textOf(policy));
  const allowed = `has the value ${JSON.stringify(policy)}: must be one of ${POLICIES.join(', ')}`;
  return [
    ...(wrong === undefined ? [] : [fault(path, 'SourceInvalid', `has no usable source: ${wrong}`)]),
    ...listFaults(mirrors, [`${path}.mirrors`, 'mirrors'], fault, (mirror, place, repeats) => {
      if (typeof mirror !== 'string') return [fault(place, 'MirrorInvalid', 'must be a string')];
      const problem = hasFormats ? mirrorProblem(mirror) : undefined;
      if (problem !== undefined)
        return [fault(place, 'MirrorInvalid', `cannot be used as mirror: ${problem}`)];
      if (!hasFormats || !repeats) return [];
      return [fault(place, 'DuplicateMirror', `lists the mirror "${mirror}" twice: must be unique`)];
    }),
    ...(isPolicy ? [] : [fault(`${path}.mirrorSourcePolicy`, 'PolicyInvalid', allowed)]),
  ];
}

const POLICIES: readonly string[] = ['NeverContactSource', 'AllowContactingSource'];

/** Lists of scopes. The list of search registries has its own schema. */
const SCOPE_LISTS = ['insecureRegistries', 'blockedRegistries', 'allowedRegistries'] as const;
const SEARCH_LIST = 'containerRuntimeSearchRegistries';
const MOST_SCOPES = 1024;
const LONGEST_SCOPE = 256;

function imageFaults(object: KubeObject): readonly SchemaFault[] {
  const fault = placeIn(object);
  const path = 'spec.registrySources';
  const sources = recordOf(recordOf(object.spec)['registrySources']);
  const both = sources['blockedRegistries'] !== undefined && sources['allowedRegistries'] !== undefined;
  const message = 'has blockedRegistries and allowedRegistries: must have only one of them, even if empty';
  return [
    ...(both ? [fault(path, 'AllowedAndBlocked', message)] : []),
    ...SCOPE_LISTS.flatMap((name) => scopeFaults(sources[name], `${path}.${name}`, fault)),
    ...searchFaults(sources[SEARCH_LIST], `${path}.${SEARCH_LIST}`, fault),
  ];
}

function scopeFaults(list: unknown, path: string, fault: Place): readonly SchemaFault[] {
  if (list === undefined) return [];
  const length = Array.isArray(list) ? list.length : 0;
  const many = `has ${length} registries: must have at most ${MOST_SCOPES}`;
  return [
    ...(length > MOST_SCOPES ? [fault(path, 'TooMany', many)] : []),
    ...listFaults(list, [path, 'registries'], fault, (scope, place) => {
      const wrong = typeof scope === 'string' ? scopeProblem(scope) : 'it is not a string';
      return wrong === undefined ? [] : [fault(place, 'ScopeInvalid', `is not a registry: ${wrong}`)];
    }),
  ];
}

function scopeProblem(scope: string): string | undefined {
  if (scope.length > LONGEST_SCOPE)
    return `it has ${scope.length} characters, must have at most ${LONGEST_SCOPE}`;
  return sourceProblem(scope);
}

function searchFaults(list: unknown, path: string, fault: Place): readonly SchemaFault[] {
  if (list === undefined) return [];
  if (Array.isArray(list) && list.length === 0)
    return [fault(path, 'SearchEmpty', 'is empty: must have a registry, or be omitted')];
  return listFaults(list, [path, 'registries'], fault, (name, place, repeats) => {
    if (typeof name !== 'string') return [fault(place, 'ScopeInvalid', 'must be a string')];
    return repeats ? [fault(place, 'DuplicateRegistry', `lists "${name}" twice: must be unique`)] : [];
  });
}
