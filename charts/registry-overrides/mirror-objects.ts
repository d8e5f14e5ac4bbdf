/**
 * Mirror sets as plain objects, and the MachineConfig that replaces them where a cluster has no such kinds.
 *
 * Source of the rule: the CRDs of OpenShift; containers-registries.conf.d(5).
 */

import { customObject } from '../../runtime/core/kubernetes/custom-kinds.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { dataUrl, labels, machineConfigOf } from '../../runtime/core/kubernetes/objects.ts';
import { collectMirrors } from '../../runtime/registry-overrides/mirror-sets/collect.ts';
import { formatRegistriesConf } from '../../runtime/registry-overrides/mirror-sets/fix.ts';

/** For which pulls the mirrors of a set serve. */
export type MirrorSetType = 'digest' | 'tag' | 'content-source-policy';

/** One source and its mirrors. */
export interface MirrorSetEntry {
  /** `host[:port][/path]` or `*.example.com`. */
  readonly source: string;
  /** In the order in which they are tried. */
  readonly mirrors: readonly string[];
  /** Whether the source is tried when every mirror fails. Not in a content source policy. @default {'AllowContactingSource'} */
  readonly mirrorSourcePolicy?: 'AllowContactingSource' | 'NeverContactSource';
}

/** A set as it is declared. */
export interface MirrorSet {
  readonly name: string;
  /** @default {'digest'} */
  readonly type?: MirrorSetType;
  readonly entries: readonly MirrorSetEntry[];
}

/**
 * The object of a set.
 *
 * @example
 * ```ts
 * import { mirrorSetObject } from './mirror-objects.ts';
 * import assert from 'node:assert/strict';
 *
 * const entries = [{ source: 'quay.io/team', mirrors: ['mirror.example.com/team'] }];
 * assert.equal(mirrorSetObject({ name: 'team', entries }).kind, 'ImageDigestMirrorSet');
 * ```
 */
export function mirrorSetObject(set: MirrorSet): KubeObject {
  const entries = set.entries.map(({ source, mirrors, mirrorSourcePolicy }) => ({
    source,
    mirrors,
    ...(mirrorSourcePolicy === undefined ? {} : { mirrorSourcePolicy }),
  }));
  const metadata = { name: set.name, labels: labels({ name: set.name, component: 'registry-overrides' }) };
  if (set.type === 'tag') return customObject('ImageTagMirrorSet', metadata, { imageTagMirrors: entries });
  return set.type === 'content-source-policy'
    ? customObject('ImageContentSourcePolicy', metadata, { repositoryDigestMirrors: entries })
    : customObject('ImageDigestMirrorSet', metadata, { imageDigestMirrors: entries });
}

/** Where the drop-in lies on a node. Later names win, so that a person can put a file after it. */
export const DROP_IN = '/etc/containers/registries.conf.d/50-pullwright-mirrors.conf';

/** Text of the drop-in for the sets. */
export function mirrorDropIn(sets: readonly MirrorSet[]): string {
  return formatRegistriesConf(collectMirrors(sets.map(mirrorSetObject)).rules);
}

/** A MachineConfig that writes the drop-in on the nodes of `role`. */
export function mirrorMachineConfig(role: string, sets: readonly MirrorSet[]): KubeObject {
  const name = `99-${role}-pullwright-mirrors`;
  const contents = { source: dataUrl(mirrorDropIn(sets)) };
  return machineConfigOf(
    role,
    { name, labels: labels({ name, component: 'registry-overrides' }) },
    {
      // The oldest that any supported operator reads.
      ignition: { version: '3.2.0' },
      storage: { files: [{ path: DROP_IN, mode: 0o644, overwrite: true, contents }] },
    },
  );
}
