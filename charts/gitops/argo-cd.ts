/** Argo CD: an Application per cluster, sync waves, and the health of our kinds. */
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { kubernetesObject } from '../../runtime/core/kubernetes/objects.ts';
import { gitopsMetadata } from './flux.ts';

export interface ArgoApplicationInput {
  readonly name: string;
  /** Of Argo CD. @default {'argocd'} */
  readonly namespace?: string;
  /** @default {'default'} */
  readonly project?: string;
  readonly repository: string;
  /** @default {'main'} */
  readonly revision?: string;
  /** Folders of the repository, each with a kustomization: the base, then its overlays. */
  readonly paths: readonly string[];
  /** @default {{ server: 'https://kubernetes.default.svc' }} */
  readonly destination?: { readonly server?: string; readonly name?: string };
  /** The cluster of the fleet, as the label by which all that syncs it is found. */
  readonly cluster?: string;
}

/**
 * An Application that syncs by itself, prunes, repairs drift, and applies on the server's side, so that fields which the
 * reconciler owns stay its own.
 *
 * @example
 * ```ts
 * import { argoApplication } from './argo-cd.ts';
 * import assert from 'node:assert/strict';
 *
 * const application = argoApplication({ name: 'prod', repository: 'https://git.example.com/fleet.git', paths: ['manifests/prod'] });
 * assert.match(JSON.stringify(application.spec), /ServerSideApply=true/);
 * ```
 */
export function argoApplication(input: ArgoApplicationInput): KubeObject {
  const [first = '.', ...rest] = input.paths.map((path) => ({
    repoURL: input.repository,
    targetRevision: input.revision ?? 'main',
    path,
  }));
  const destination =
    input.destination?.name === undefined
      ? { server: input.destination?.server ?? IN_CLUSTER }
      : { name: input.destination.name };
  return {
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'Application',
    metadata: gitopsMetadata({ ...input, namespace: input.namespace ?? 'argocd' }),
    spec: {
      project: input.project ?? 'default',
      ...(rest.length === 0 ? { source: first } : { sources: [first, ...rest] }),
      destination,
      syncPolicy: {
        automated: { prune: true, selfHeal: true },
        syncOptions: ['ServerSideApply=true', 'PruneLast=true', 'RespectIgnoreDifferences=true'],
        retry: { limit: 5, backoff: { duration: '10s', factor: 2, maxDuration: '5m' } },
      },
    },
  };
}

const IN_CLUSTER = 'https://kubernetes.default.svc';

/**
 * Wave of an object: what others need comes first, what needs a controller last. Argo CD deletes in reverse. Between waves it waits
 * for health, so that nothing may stand behind what needs it: a Certificate comes with the Deployment that mounts its Secret.
 */
export function syncWave(object: KubeObject): number {
  if (['CustomResourceDefinition', 'Namespace'].includes(object.kind)) return -2;
  if (['ServiceAccount', 'Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'].includes(object.kind))
    return -1;
  const group = object.apiVersion.split('/')[0] ?? '';
  if (group === 'cert-manager.io') return 0;
  return object.apiVersion.includes('/') && group.includes('.') && !group.endsWith('.k8s.io') ? 1 : 0;
}

/** The object with its wave as annotation; nothing is added for wave 0, which is the default. */
export function withSyncWave(object: KubeObject): KubeObject {
  const wave = syncWave(object);
  if (wave === 0) return object;
  const annotations = { ...object.metadata.annotations, 'argocd.argoproj.io/sync-wave': String(wave) };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/**
 * Argo CD knows the health of Deployments and DaemonSets; for kinds with conditions it needs a script. `Ready` sums up,
 * `Stalled` means that a person must act, `Reconciling` that it continues without help. A status of an older generation says nothing.
 */
export const HEALTH_LUA = `local hs = { status = "Progressing", message = "Waiting for a status" }
if obj.status == nil or obj.status.conditions == nil then
  return hs
end
local generation = obj.metadata.generation
for _, condition in ipairs(obj.status.conditions) do
  local stale = condition.observedGeneration ~= nil and generation ~= nil and condition.observedGeneration < generation
  if not stale then
    if condition.type == "Stalled" and condition.status == "True" then
      return { status = "Degraded", message = condition.message }
    end
    if condition.type == "Ready" then
      hs.message = condition.message
      if condition.status == "True" then
        hs.status = "Healthy"
      end
    end
  end
end
return hs
`;

/**
 * The health of definitions. Up to 3.2 Argo CD calls one `Degraded` from its first condition until it is established, and fails the sync
 * that has just made it: with several definitions at once nearly always. Newer ones wait instead, and so does this
 * (argoproj/argo-cd#26126). What does not pass by itself stays `Degraded`.
 */
export const DEFINITION_HEALTH_LUA = `local hs = { status = "Progressing", message = "Waiting for the definition to be established" }
if obj.metadata.deletionTimestamp ~= nil then
  hs.message = "The definition is being deleted"
  return hs
end
if obj.status == nil or obj.status.conditions == nil then
  return hs
end
for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "NamesAccepted" and condition.status == "False" then
    return { status = "Degraded", message = condition.message }
  end
  if condition.type == "NonStructuralSchema" and condition.status == "True" then
    return { status = "Degraded", message = condition.message }
  end
  if condition.type == "Established" and condition.status == "True" then
    hs.status = "Healthy"
    hs.message = condition.message
  end
end
return hs
`;

/** Kinds of ours that carry conditions, as Argo CD writes them. */
export const HEALTH_KINDS: readonly string[] = [
  'pullwright.dev_PullStatus',
  'pullwright.dev_PullSecretProfile',
  'pullwright.dev_PullSecretGrant',
];

/**
 * The part of the ConfigMap `argocd-cm` that gives Argo CD the health of our kinds, and of definitions while they are new. It holds
 * only these keys: apply it with server-side apply, or as a patch, and what else is in the ConfigMap stays.
 */
export function argoHealthPatch(namespace = 'argocd'): KubeObject {
  const rules: readonly (readonly [kind: string, lua: string])[] = [
    ['apiextensions.k8s.io_CustomResourceDefinition', DEFINITION_HEALTH_LUA],
    ...HEALTH_KINDS.map((kind) => [kind, HEALTH_LUA] as const),
  ];
  const data = rules.map(([kind, lua]) => [`resource.customizations.health.${kind}`, lua]);
  return kubernetesObject(
    'ConfigMap',
    {
      name: 'argocd-cm',
      namespace,
      labels: { 'app.kubernetes.io/part-of': 'argocd' },
      annotations: { 'argocd.argoproj.io/sync-options': 'Prune=false,Delete=false' },
    },
    {
      data: Object.fromEntries(data),
    },
  );
}
