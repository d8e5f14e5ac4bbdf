/** What decides where the nodes of a cluster pull from, and what of it is read of a cluster that is there. */
import { parse as parseToml } from 'smol-toml';
import type { ObjectStore } from '../../controller/store.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { MIRROR_SET_KINDS } from '../../rules/mirrors/collect.ts';
import { CLUSTER_VERSION, IMAGE_CONFIG, readNodeInput } from '../../rules/node-registries/input.ts';
import { MACHINE_CONFIG, nodeMirrors } from '../../rules/node-registries/node-mirrors.ts';
import type { SourceKind } from '../object-source.ts';

export const PROVIDER_CONFIG = 'CRIOCredentialProviderConfig';

/** Its file is that of custom pools too. */
const WORKER_CONFIG: SourceKind = { ...MACHINE_CONFIG, name: '99-worker-generated-registries' };

const SETS: readonly SourceKind[] = MIRROR_SET_KINDS.map(({ apiVersion, kind }) => ({ apiVersion, kind }));

/** What concerns every pull of a cluster: five requests. */
export const CLUSTER_KINDS: readonly SourceKind[] = [
  { apiVersion: 'config.openshift.io/v1', kind: PROVIDER_CONFIG, name: 'cluster' },
  ...SETS,
  IMAGE_CONFIG,
];

/** Kinds of a folder that decide about nodes. */
export const NODE_FOLDER_KINDS: readonly string[] = [
  ...SETS,
  IMAGE_CONFIG,
  CLUSTER_VERSION,
  MACHINE_CONFIG,
].map(({ kind }) => kind);

/** The objects that nodes go by. */
export function nodeObjects(store: ObjectStore): readonly KubeObject[] {
  return [...SETS, IMAGE_CONFIG, CLUSTER_VERSION, MACHINE_CONFIG].flatMap(({ apiVersion, kind }) =>
    store.list({ apiVersion, kind }),
  );
}

/** What is needed beside {@link CLUSTER_KINDS}: the release where something is blocked, and what nodes keep where all is refused. */
export function nextNodeKinds(store: ObjectStore): readonly SourceKind[] {
  const objects = nodeObjects(store);
  const isBlocking = readNodeInput(objects).sources.blocked.length > 0;
  const isRefused = nodeMirrors(objects, parseToml).state !== 'rendered';
  return [...(isBlocking ? [CLUSTER_VERSION] : []), ...(isRefused ? [WORKER_CONFIG] : [])];
}
