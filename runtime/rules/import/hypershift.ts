/** HyperShift: the additional pull secret, mirror sets, and the clusters that a management cluster hosts. */

import { GLOBAL_PULL_SECRET } from '../kubernetes/global-pull-secret.ts';
import { isSecret, type KubeObject } from '../kubernetes/object.ts';
import { MIRROR_SET_KINDS } from '../mirrors/collect.ts';
import { recordOf, textOf } from '../record.ts';
import { IS_REGISTRY_OVERRIDES } from '../registry-overrides/olm-catalogs.ts';
import { annotation } from './copies.ts';
import type { ImportedPart, ImportNote } from './types.ts';
import { subjectOf } from './types.ts';

/** Sections for what is found. */
export function importHypershift(objects: readonly KubeObject[]): ImportedPart {
  const additional = objects.find(
    (object) =>
      isSecret(object) &&
      object.metadata.namespace === GLOBAL_PULL_SECRET.namespace &&
      object.metadata.name === GLOBAL_PULL_SECRET.additional,
  );
  const sets = objects.flatMap(mirrorSet);
  const hosted = objects.filter(({ kind }) => kind === 'HostedCluster');
  const notes: readonly ImportNote[] = [
    ...(additional === undefined
      ? []
      : [kept(additional, 'is read where it stands: section global-pull-secret')]),
    ...sets.map(
      ({ object, set }): ImportNote => ({
        outcome: 'carried',
        subject: subjectOf(object),
        message: `mirror set ${set.name} of section registry-overrides`,
      }),
    ),
    ...hosted.flatMap(hostedNotes),
  ];
  return {
    systems: {
      ...(additional === undefined || hosted.length > 0 ? {} : { 'global-pull-secret': {} }),
      ...(sets.length === 0 ? {} : { 'registry-overrides': { mirrorSets: sets.map(({ set }) => set) } }),
    },
    hosted: hosted.map(({ metadata }) => ({
      namespace: metadata.namespace ?? 'clusters',
      name: metadata.name,
    })),
    notes,
  };
}

function kept(object: KubeObject, message: string): ImportNote {
  return { outcome: 'kept', subject: subjectOf(object), message };
}

interface MirrorSetInput {
  readonly name: string;
  readonly type: string;
  readonly entries: readonly object[];
}

const TYPES: Readonly<Record<string, string>> = {
  ImageDigestMirrorSet: 'digest',
  ImageTagMirrorSet: 'tag',
  ImageContentSourcePolicy: 'content-source-policy',
};

function mirrorSet(
  object: KubeObject,
): readonly { readonly object: KubeObject; readonly set: MirrorSetInput }[] {
  const kind = MIRROR_SET_KINDS.find((one) => one.kind === object.kind);
  const entries = kind === undefined ? undefined : recordOf(object.spec)[kind.list];
  if (kind === undefined || !Array.isArray(entries)) return [];
  const usable = entries
    .map(recordOf)
    .filter(({ source, mirrors }) => textOf(source) !== '' && hasMirrors(mirrors));
  if (usable.length === 0) return [];
  const set = {
    name: object.metadata.name,
    type: TYPES[kind.kind] ?? 'digest',
    entries: usable.map(({ source, mirrors, mirrorSourcePolicy }) => ({
      source,
      mirrors,
      ...(textOf(mirrorSourcePolicy) === '' ? {} : { mirrorSourcePolicy }),
    })),
  };
  return [{ object, set }];
}

function hasMirrors(mirrors: unknown): boolean {
  return Array.isArray(mirrors) && mirrors.length > 0 && mirrors.every((one) => typeof one === 'string');
}

function hostedNotes(object: KubeObject): readonly ImportNote[] {
  const { imageContentSources } = (object.spec ?? {}) as { readonly imageContentSources?: unknown };
  return [
    { outcome: 'carried', subject: subjectOf(object), message: `cluster ${object.metadata.name}` },
    ...(annotation(object, IS_REGISTRY_OVERRIDES) === undefined
      ? []
      : [kept(object, `annotation ${IS_REGISTRY_OVERRIDES} is read where it stands`)]),
    ...(imageContentSources === undefined
      ? []
      : [kept(object, 'spec.imageContentSources stays with HyperShift, which renders it for the nodes')]),
  ];
}
