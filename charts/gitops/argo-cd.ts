/** Argo CD: an Application per cluster, sync waves, and health checks for our kinds. */
import { customObject } from '../../runtime/core/kubernetes/custom-kinds.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { configMap } from '../../runtime/core/kubernetes/objects.ts';
import { gitopsMetadata, type SyncInput } from './flux.ts';

export interface ArgoApplicationInput extends SyncInput {
  /** @default {'default'} */
  readonly project?: string;
  readonly repository: string;
  /** @default {'main'} */
  readonly revision?: string;
  /** Folders of the repository, each with a kustomization: the base, then its overlays. */
  readonly paths: readonly string[];
  /** @default {{ server: 'https://kubernetes.default.svc' }} */
  readonly destination?: { readonly server?: string; readonly name?: string };
}

/**
 * Builds an Application with automated sync, pruning and self-heal. It uses server-side apply, so that fields owned by the
 * reconciler stay unchanged.
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
  const { name, server = 'https://kubernetes.default.svc' } = input.destination ?? {};
  return customObject('Application', gitopsMetadata(input, 'argocd'), {
    project: input.project ?? 'default',
    ...(rest.length === 0 ? { source: first } : { sources: [first, ...rest] }),
    destination: name === undefined ? { server } : { name },
    syncPolicy: {
      automated: { prune: true, selfHeal: true },
      syncOptions: ['ServerSideApply=true', 'PruneLast=true', 'RespectIgnoreDifferences=true'],
      retry: { limit: 5, backoff: { duration: '10s', factor: 2, maxDuration: '5m' } },
    },
  });
}

/**
 * Returns the sync wave of an object: dependencies first, custom resources last. Argo CD deletes in reverse order. It waits for
 * health between waves, so mutually dependent objects share one: a Certificate and the Deployment that mounts its Secret.
 */
export function syncWave(object: KubeObject): number {
  if (['CustomResourceDefinition', 'Namespace'].includes(object.kind)) return -2;
  if (['ServiceAccount', 'Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'].includes(object.kind))
    return -1;
  const group = object.apiVersion.split('/')[0] ?? '';
  if (group === 'cert-manager.io') return 0;
  return object.apiVersion.includes('/') && group.includes('.') && !group.endsWith('.k8s.io') ? 1 : 0;
}

/** Adds the wave annotation; omitted for wave 0, the default. */
export function withSyncWave(object: KubeObject): KubeObject {
  const wave = syncWave(object);
  if (wave === 0) return object;
  const annotations = { ...object.metadata.annotations, 'argocd.argoproj.io/sync-wave': String(wave) };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/**
 * Argo CD has built-in health checks for workloads; custom kinds need a script. `Ready` is the summary, `Stalled` requires
 * user action, `Reconciling` is progressing. A status with an older observedGeneration is ignored.
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
 * Health check for CRDs. Argo CD up to 3.2 reports a new CRD as `Degraded` from its first condition until it is established. This
 * fails the sync that created it, almost always with several CRDs. Newer versions wait, and so does this script
 * (argoproj/argo-cd#26126). Permanent failures stay `Degraded`.
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

/** Health checks of CRDs and of our kinds with conditions, in Argo CD's notation. */
const HEALTH_CHECKS = {
  'apiextensions.k8s.io_CustomResourceDefinition': DEFINITION_HEALTH_LUA,
  'pullwright.dev_PullStatus': HEALTH_LUA,
  'pullwright.dev_PullSecretProfile': HEALTH_LUA,
  'pullwright.dev_PullSecretGrant': HEALTH_LUA,
};

/**
 * Patch for the ConfigMap `argocd-cm` with the health checks for our kinds and for CRDs. It contains only these keys. Use
 * server-side apply or a patch, so that other keys stay unchanged.
 */
export function argoHealthPatch(namespace = 'argocd'): KubeObject {
  const metadata = {
    name: 'argocd-cm',
    namespace,
    labels: { 'app.kubernetes.io/part-of': 'argocd' },
    annotations: { 'argocd.argoproj.io/sync-options': 'Prune=false,Delete=false' },
  };
  const checks = Object.entries(HEALTH_CHECKS);
  const data = checks.map(([kind, lua]) => [`resource.customizations.health.${kind}`, lua]);
  return configMap(metadata, Object.fromEntries(data));
}
