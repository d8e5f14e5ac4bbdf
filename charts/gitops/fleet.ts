/** Argo CD or Flux objects that sync the rendered tree of a fleet. */
import type { Construct } from 'constructs';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { defined } from '../../runtime/core/record.ts';
import type { Fleet } from '../fleet.ts';
import type { DestinationInput, GitOpsInput } from '../fleet-schema.ts';
import { pathOf } from '../output.ts';
import { ObjectGroup } from '../shared/group.ts';
import { type ArgoApplicationInput, argoApplication, argoHealthPatch, withSyncWave } from './argo-cd.ts';
import { type FluxKustomizationInput, type FluxSourceInput, fluxKustomization, fluxSource } from './flux.ts';

/** A rendered cluster. */
export interface RenderedCluster {
  readonly name: string;
  readonly path: string;
  readonly objects: readonly KubeObject[];
  /** Files that the user maintains, relative to the cluster's folder. */
  readonly kept: readonly string[];
}

/** Objects of the folder `_gitops`, to apply in the cluster of the GitOps tool. */
export function gitopsObjects(
  input: GitOpsInput,
  clusters: readonly RenderedCluster[],
  fleet: Fleet,
): readonly KubeObject[] {
  const trees = clusters.filter((cluster) => cluster.objects.length > 0);
  const destinationOf = ({ name }: RenderedCluster): DestinationInput =>
    fleet.clusters.find(({ context }) => context.name === name)?.input.destination ?? {};
  if (input.tool === 'argo-cd')
    return [
      ...trees.map((tree) => application(input, tree, destinationOf(tree))),
      argoHealthPatch(input.namespace ?? 'argocd'),
    ];
  const source = input.source ?? 'pullwright';
  return [
    ...(input.source === undefined ? [fluxSource({ ...input, name: source })] : []),
    ...trees.flatMap((tree) => kustomizations({ ...input, source }, tree, destinationOf(tree))),
  ];
}

/** Adds Argo CD's sync waves, unless they are disabled or another tool is used. */
export function withSyncWaves(
  objects: readonly KubeObject[],
  input: GitOpsInput | undefined,
): readonly KubeObject[] {
  return input?.tool === 'argo-cd' && input.syncWaves !== false ? objects.map(withSyncWave) : objects;
}

function application(input: GitOpsInput, tree: RenderedCluster, destination: DestinationInput): KubeObject {
  return argoApplication({
    ...input,
    name: `pullwright-${tree.name}`,
    cluster: tree.name,
    // Argo CD cannot decrypt SOPS files.
    paths: foldersOf(input, tree).flatMap(({ overlay, path }) => (overlay === SOPS ? [] : [path])),
    destination,
  });
}

function kustomizations(
  { sopsKeySecret = 'sops-age', ...input }: GitOpsInput & { readonly source: string },
  tree: RenderedCluster,
  { kubeConfigSecret }: DestinationInput,
): readonly KubeObject[] {
  const base = `pullwright-${tree.name}`;
  const folders = foldersOf(input, tree);
  const hasBase = folders[0]?.overlay === '';
  return folders.map(({ overlay, path }) =>
    fluxKustomization({
      ...input,
      ...defined({ kubeConfigSecret }),
      cluster: tree.name,
      name: overlay === '' ? base : `${base}-${overlay.slice('overlays/'.length)}`,
      path: `./${path}`,
      ...(hasBase && overlay !== '' ? { dependsOn: [base] } : {}),
      ...(overlay === SOPS ? { sopsKeySecret } : {}),
    }),
  );
}

const SOPS = 'overlays/sops';

/**
 * The folders of a cluster with a kustomization: the base, with an empty overlay, then each `overlays/<API group>`. Both tools
 * would sync everything below a base without a kustomization, including overlays.
 */
function foldersOf(input: GitOpsInput, tree: RenderedCluster) {
  const files = [...tree.objects.map(pathOf), ...tree.kept];
  const overlays = new Set(files.map((path) => /^overlays\/[^/]+/.exec(path)?.[0] ?? ''));
  return [...overlays].sort().map((overlay) => {
    const parts = [input.path ?? '.', tree.path, overlay];
    return { overlay, path: parts.filter((part) => part !== '' && part !== '.').join('/') };
  });
}

// Constructs for Argo CD and Flux objects.

/** An Argo CD Application: see {@link argoApplication}. */
export class ArgoApplication extends ObjectGroup {
  constructor(scope: Construct, id: string, props: ArgoApplicationInput) {
    super(scope, id, [argoApplication(props)]);
  }
}

/** Argo CD health checks for our kinds: see {@link argoHealthPatch}. */
export class ArgoHealth extends ObjectGroup {
  constructor(scope: Construct, id: string, props: { readonly namespace?: string } = {}) {
    super(scope, id, [argoHealthPatch(props.namespace)]);
  }
}

/** A Flux Kustomization: see {@link fluxKustomization}. */
export class FluxKustomization extends ObjectGroup {
  constructor(scope: Construct, id: string, props: FluxKustomizationInput) {
    super(scope, id, [fluxKustomization(props)]);
  }
}

/** A Flux GitRepository: see {@link fluxSource}. */
export class FluxSource extends ObjectGroup {
  constructor(scope: Construct, id: string, props: FluxSourceInput) {
    super(scope, id, [fluxSource(props)]);
  }
}
