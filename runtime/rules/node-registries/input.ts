/**
 * What the operator reads: the mirror sets as they are written, the registries of `image.config.openshift.io/cluster`, and the
 * release image of the ClusterVersion.
 *
 * Source of the rule: the Machine Config Operator's `syncImageConfig`. Of the mirror sets nothing is left out here, because one
 * bad entry makes the operator refuse all of them.
 */
import type { KubeObject } from '../kubernetes/object.ts';
import { MIRROR_SET_KINDS, type MirrorSetKind } from '../mirrors/collect.ts';
import type { RuleOrigin } from '../mirrors/mirrors.ts';

/** One entry of one mirror set, whatever it says. */
export interface SetEntry {
  readonly source: string;
  readonly mirrors: readonly string[];
  /** `AllowContactingSource` where none is written. */
  readonly policy: string;
  readonly origin: RuleOrigin;
}

/** Lists of the Image object. An absent list and an empty one differ. */
export interface RegistrySources {
  readonly insecure?: readonly string[];
  readonly blocked: readonly string[];
  readonly allowed: readonly string[];
  readonly search?: readonly string[];
}

export interface NodeInput {
  /** Of ImageDigestMirrorSets, then of ImageContentSourcePolicies. */
  readonly digest: readonly SetEntry[];
  /** Of ImageTagMirrorSets. */
  readonly tag: readonly SetEntry[];
  /** Whether an object of the three kinds exists, with or without entries. */
  readonly hasSets: boolean;
  readonly sources: RegistrySources;
  /** Image of the release; undefined where no ClusterVersion is known. */
  readonly release?: string | undefined;
}

/** The Image object that counts. */
export const IMAGE_CONFIG = { apiVersion: 'config.openshift.io/v1', kind: 'Image', name: 'cluster' } as const;
export const CLUSTER_VERSION = {
  apiVersion: 'config.openshift.io/v1',
  kind: 'ClusterVersion',
  name: 'version',
} as const;

/**
 * Takes the input out of the objects of one cluster; other objects are skipped. Objects of one kind come by name, so that
 * their order does not matter.
 *
 * @example
 * ```ts
 * import { readNodeInput } from './input.ts';
 * import assert from 'node:assert/strict';
 *
 * const input = readNodeInput([{
 *   apiVersion: 'config.openshift.io/v1', kind: 'Image', metadata: { name: 'cluster' },
 *   spec: { registrySources: { blockedRegistries: ['bad.example.com'] } },
 * }]);
 * assert.deepEqual(input.sources, { blocked: ['bad.example.com'], allowed: [] });
 * assert.equal(input.hasSets, false);
 * ```
 */
export function readNodeInput(objects: readonly KubeObject[]): NodeInput {
  const entries = MIRROR_SET_KINDS.map((set) => entriesOf(objects, set));
  const [digest = [], policy = [], tag = []] = entries;
  return {
    digest: [...digest, ...policy],
    tag,
    hasSets: objects.some((object) => MIRROR_SET_KINDS.some((set) => isOf(object, set))),
    sources: sourcesOf(objects.find((object) => isOne(object, IMAGE_CONFIG))),
    release: releaseOf(objects.find((object) => isOne(object, CLUSTER_VERSION))),
  };
}

/** Whether `object` is of a kind, in whatever version of its group. */
export function isOf(
  object: KubeObject,
  set: { readonly kind: string; readonly apiVersion: string },
): boolean {
  const group = (apiVersion: string): string => apiVersion.split('/', 1)[0] ?? '';
  return object.kind === set.kind && group(object.apiVersion) === group(set.apiVersion);
}

function isOne(object: KubeObject, wanted: typeof IMAGE_CONFIG | typeof CLUSTER_VERSION): boolean {
  return isOf(object, wanted) && object.metadata.name === wanted.name;
}

function entriesOf(objects: readonly KubeObject[], set: MirrorSetKind): readonly SetEntry[] {
  return objects
    .filter((object) => isOf(object, set))
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .flatMap((object) => {
      const list = record(object.spec)[set.list];
      return (Array.isArray(list) ? list : []).map((item: unknown, at): SetEntry => {
        const { source, mirrors, mirrorSourcePolicy: policy } = record(item);
        const isPolicy = typeof policy === 'string' && policy !== '' && !set.kind.endsWith('Policy');
        return {
          source: typeof source === 'string' ? source : '',
          mirrors: texts(mirrors) ?? [],
          policy: isPolicy ? policy : 'AllowContactingSource',
          origin: { kind: set.kind, name: object.metadata.name, path: `spec.${set.list}[${at}]` },
        };
      });
    });
}

function sourcesOf(image: KubeObject | undefined): RegistrySources {
  const written = record(record(image?.spec)['registrySources']);
  const insecure = texts(written['insecureRegistries']);
  const search = texts(written['containerRuntimeSearchRegistries']);
  return {
    ...(insecure === undefined ? {} : { insecure }),
    blocked: texts(written['blockedRegistries']) ?? [],
    allowed: texts(written['allowedRegistries']) ?? [],
    ...(search === undefined ? {} : { search }),
  };
}

function releaseOf(version: KubeObject | undefined): string | undefined {
  const image = record(record(version?.['status'])['desired'])['image'];
  return typeof image === 'string' ? image : undefined;
}

function texts(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.map((item) => (typeof item === 'string' ? item : ''));
}

/** `value`, or an empty map where it is none. */
export function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
