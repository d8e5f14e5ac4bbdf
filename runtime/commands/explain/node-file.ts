/** The docker config of the node that pulls: which node it is, whether the pull secret is brought to it, and what its file holds. */
import type { ObjectName, ObjectStore } from '../../controller/store.ts';
import type { AuthSource } from '../../rules/auth-lookup/kubelet.ts';
import type { NodeMerge } from '../../rules/diagnose/explain-types.ts';
import { mergePullSecrets } from '../../rules/docker-config/merge.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { findPod, type PodPuller, podSpecIn } from '../pod-spec.ts';
import { nodeSource } from './secret-sources.ts';

const SECRET = { apiVersion: 'v1', kind: 'Secret' } as const;

/** What a node reads, and what is known about how it was made. */
export interface NodeFileFound {
  readonly node?: AuthSource;
  readonly merge?: NodeMerge;
}

/** The content of the nodes' file. */
export const GLOBAL_SECRET: ObjectName = { ...SECRET, namespace: NAMES.namespace, name: NAMES.global };

/** Hosted clusters have a copy of the platform's pull secret at the place where the others keep it. */
export const PLATFORM_SECRET: ObjectName = {
  ...SECRET,
  namespace: NAMES.configNamespace,
  name: NAMES.platform,
};

/** The node that is asked about, else the one that the pod runs on. */
export function nodeNameOf(store: ObjectStore, puller: PodPuller): string | undefined {
  if (puller.node !== undefined) return puller.node;
  const found = findPod(store, puller);
  const name = found?.kind === 'Pod' ? podSpecIn(found)['nodeName'] : undefined;
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** The content that the node's file has: what is synced to it, else what the node booted with. */
export function nodeFile(
  store: ObjectStore,
  puller: PodPuller,
  notes: string[],
  synced: boolean = isSynced(store, puller, notes),
): NodeFileFound {
  const original =
    configSource(store, NAMES.namespace, NAMES.original) ??
    configSource(store, NAMES.configNamespace, NAMES.platform);
  const global = synced ? configSource(store, NAMES.namespace, NAMES.global) : undefined;
  const plain = global ?? original;
  const merge = synced ? mergedFrom(store, original) : undefined;
  if (merge === undefined) return plain === undefined ? {} : { node: plain };
  if (global !== undefined) return { node: global, merge: merge.facts };
  notes.push(`${NAMES.global} is not there yet: its content is merged here as the reconciler would`);
  return { node: merge.source, merge: merge.facts };
}

interface Merged {
  readonly source: AuthSource;
  readonly facts: NodeMerge;
}

/** By both Secrets: it is the same for every pod. */
const merges = new WeakMap<AuthSource, WeakMap<AuthSource, { readonly merged: Merged | undefined }>>();

/** The merge that the reconciler would make, for the origins of entries and the verdicts on them. */
function mergedFrom(store: ObjectStore, original: AuthSource | undefined): Merged | undefined {
  const additional = configSource(store, NAMES.namespace, NAMES.additional);
  if (original === undefined || additional === undefined) return undefined;
  const known = merges.get(original)?.get(additional);
  if (known !== undefined) return known.merged;
  const merged = merge(original, additional);
  merges.set(original, (merges.get(original) ?? new WeakMap()).set(additional, { merged }));
  return merged;
}

function merge(original: AuthSource, additional: AuthSource): Merged | undefined {
  const result = mergePullSecrets({ original: original.text, additional: additional.text });
  if (!result.ok) return undefined;
  const names = { original: original.name, additional: additional.name, lastGood: additional.name };
  return {
    source: { name: `Secret/${NAMES.namespace}/${NAMES.global}`, format: 'config.json', text: result.text },
    facts: {
      origins: new Map(result.entries.map(({ key, source }) => [key, names[source]])),
      verdicts: result.verdicts,
      additional: additional.name,
    },
  };
}

function configSource(store: ObjectStore, namespace: string, name: string): AuthSource | undefined {
  const found = store.get({ ...SECRET, namespace, name });
  return found === undefined ? undefined : nodeSource(found);
}

/** Whether the pull secret is brought to the node in question. Of a pod's own node that is not known, nothing bad is taken. */
export function isSynced(store: ObjectStore, puller: PodPuller, notes: string[]): boolean {
  const node = nodeNameOf(store, puller);
  if (node === undefined) return true;
  const found: KubeObject | undefined = store.get({ apiVersion: 'v1', kind: 'Node', name: node });
  if (found === undefined && puller.node === undefined) return true;
  if (found?.metadata.labels?.[NAMES.nodeLabel] === 'true') return true;
  // Where nothing is brought to any node, the label says nothing.
  if (puller.node === undefined && store.get(GLOBAL_SECRET) === undefined) return false;
  const why = found === undefined ? 'is not there' : `lacks the label ${NAMES.nodeLabel}=true`;
  notes.push(`Node "${node}" ${why}: it is taken to have the pull secret that it booted with`);
  return false;
}
