/** Flux: a GitRepository, and a Kustomization per folder. */
import { customObject } from '../../runtime/core/kubernetes/custom-kinds.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { labels, SYNCED_CLUSTER_LABEL } from '../../runtime/core/kubernetes/objects.ts';
import { defined } from '../../runtime/core/record.ts';

/** Metadata of every object that makes a tool sync a folder. */
export interface SyncInput {
  readonly name: string;
  /** Namespace of the tool. @default {'argocd' or 'flux-system'} */
  readonly namespace?: string;
  /** Name of the cluster in the fleet, for the label that selects all of its sync objects. */
  readonly cluster?: string;
}

export interface FluxKustomizationInput extends SyncInput {
  /** GitRepository in the same namespace. */
  readonly source: string;
  /** Folder of the repository. */
  readonly path: string;
  /** @default {'10m'} */
  readonly interval?: string;
  /** Kustomizations that must be ready first. */
  readonly dependsOn?: readonly string[];
  /** Secret with the kubeconfig of another cluster. */
  readonly kubeConfigSecret?: string;
  /** Secret with the decryption key for SOPS files in this folder. */
  readonly sopsKeySecret?: string;
}

/**
 * Builds a Kustomization that prunes and waits for health. Flux uses server-side apply and derives the health of our kinds from
 * their conditions.
 *
 * @example
 * ```ts
 * import { fluxKustomization } from './flux.ts';
 * import assert from 'node:assert/strict';
 *
 * const object = fluxKustomization({ name: 'prod', source: 'fleet', path: './manifests/prod' });
 * assert.equal((object.spec as { prune: boolean }).prune, true);
 * ```
 */
export function fluxKustomization(input: FluxKustomizationInput): KubeObject {
  return customObject('Kustomization', gitopsMetadata(input, 'flux-system'), {
    interval: input.interval ?? '10m',
    retryInterval: '2m',
    timeout: '5m',
    sourceRef: { kind: 'GitRepository', name: input.source },
    path: input.path,
    prune: true,
    wait: true,
    ...defined({
      dependsOn: input.dependsOn?.map((name) => ({ name })),
      kubeConfig: input.kubeConfigSecret && { secretRef: { name: input.kubeConfigSecret } },
      decryption: input.sopsKeySecret && { provider: 'sops', secretRef: { name: input.sopsKeySecret } },
    }),
  });
}

export interface FluxSourceInput extends Omit<SyncInput, 'cluster'> {
  /** `https://`, `ssh://` or the scp-like `git@host:path`. */
  readonly repository: string;
  /** Branch, full name such as `refs/tags/v1`, or commit. @default {'main'} */
  readonly revision?: string;
  /** @default {'10m'} */
  readonly interval?: string;
}

/**
 * Builds a GitRepository.
 *
 * @example
 * ```ts
 * import { fluxSource } from './flux.ts';
 * import assert from 'node:assert/strict';
 *
 * const { spec } = fluxSource({ name: 'fleet', repository: 'git@git.example.com:platform/fleet.git', revision: 'refs/tags/v1' });
 * assert.deepEqual(spec, {
 *   interval: '10m',
 *   url: 'ssh://git@git.example.com/platform/fleet.git',
 *   ref: { name: 'refs/tags/v1' },
 * });
 * ```
 */
export function fluxSource(input: FluxSourceInput): KubeObject {
  return customObject('GitRepository', gitopsMetadata(input, 'flux-system'), {
    interval: input.interval ?? '10m',
    url: input.repository.replace(/^(git@[^:/]+):\/?/, 'ssh://$1/'),
    ref: sourceReference(input.revision ?? 'main'),
  });
}

function sourceReference(revision: string): Readonly<Record<string, string>> {
  if (/^[0-9a-f]{40}$/.test(revision)) return { commit: revision };
  return revision.startsWith('refs/') ? { name: revision } : { branch: revision };
}

/** Metadata of a sync object, with the cluster's label. */
export function gitopsMetadata(
  { name, namespace, cluster }: SyncInput,
  namespaceOfTool: string,
): KubeObject['metadata'] {
  return {
    name,
    namespace: namespace ?? namespaceOfTool,
    labels: {
      ...labels({ name: 'pullwright', component: 'gitops' }),
      ...(cluster === undefined ? {} : { [SYNCED_CLUSTER_LABEL]: cluster }),
    },
  };
}
