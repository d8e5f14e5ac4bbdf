/** Objects of clusters, from which the fuzzer makes wrong ones: those of the examples, and what the reconcilers make of them. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { loadReconcilers } from '../../runtime/commands/reconcile/reconcilers.ts';
import { allScopes, LOCAL_SCOPE } from '../../runtime/commands/reconcile/scopes.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { machineConfig } from '../../runtime/credential-provider/objects.ts';
import type { Reconciler } from '../../runtime/engine/contract.ts';
import { folderOf } from '../../runtime/engine/offline/manifests.ts';
import { type OfflineResult, runOffline } from '../../runtime/engine/offline/offline.ts';
import { meta } from '../support/meta.ts';
import { AUTHS, jsonOf, PROVIDER } from './corpus.ts';

/** A pod of the first dump, and the image that it runs. */
export const POD = { namespace: 'payments', name: 'api-7c9d8-x2x1z' } as const;
export const IMAGE = 'registry.example.com/payments/api:1.4.2';

const reconcilers: readonly Reconciler[] = await loadReconcilers({
  'global-pull-secret': {},
  'pull-secret-injection': {},
  'registry-overrides': {},
  'credential-provider': {},
});

/** At most two of a kind, small enough to be made wrong quickly; what a Secret holds is planted. */
function dump(objects: readonly KubeObject[]): string {
  const few = Object.values(Object.groupBy(objects, ({ kind }) => kind)).flatMap((list = []) =>
    list.slice(0, 2),
  );
  const data = { '.dockerconfigjson': Buffer.from(AUTHS).toString('base64') };
  const items = few.map((object) => ({
    ...object,
    metadata: { ...object.metadata, managedFields: undefined },
    ...(object.kind === 'Secret' ? { data } : {}),
  }));
  return jsonOf({ apiVersion: 'v1', kind: 'List', items });
}

function examples(pattern: string): readonly KubeObject[] {
  const folder = join(import.meta.dirname, '../../examples');
  return globSync(pattern, { cwd: folder })
    .sort()
    .flatMap((file) => parseAllDocuments(readFileSync(join(folder, file), 'utf8')))
    .flatMap((document) => {
      const object = document.toJS() as KubeObject & { readonly items?: readonly KubeObject[] };
      return object.items ?? [object];
    });
}

/** A pass of all reconcilers over two files. */
export function reconcileDumps(text: string, rest: string): OfflineResult {
  const { store } = folderOf([
    { file: 'a.yaml', text },
    { file: 'b.yaml', text: rest },
  ]);
  const scope = allScopes(store)[0] ?? LOCAL_SCOPE;
  const now = new Date(Date.UTC(2026, 5, 1));
  return runOffline({ reconcilers, scope, stores: { hosted: store, management: store }, now });
}

const SIDECARS: KubeObject = {
  ...meta('apps.kruise.io/v1alpha1 SidecarSet', { name: 'sidecar' }),
  spec: {
    selector: { matchLabels: { app: 'api' } },
    imagePullSecrets: [{ name: 'pull' }],
    updateStrategy: { type: 'NotUpdate' },
  },
};
const FILE = '/etc/kubernetes/credential-providers/ecr-credential-provider.yaml';
const made = machineConfig('worker', [{ path: FILE, text: PROVIDER }]);
/** Rendered kubelet configuration of a pool. */
const RENDERED: KubeObject = {
  ...made,
  metadata: { name: 'rendered-worker-1' },
  spec: {
    config: {
      ...(made.spec as { readonly config: object }).config,
      systemd: {
        units: [
          {
            name: 'kubelet.service',
            contents: `[Service]\nExecStart=/usr/bin/kubelet --image-credential-provider-config=${FILE}\n`,
            dropins: [{ name: '10.conf', contents: '[Service]\n' }],
          },
        ],
      },
    },
  },
};
const ROLLED = { configuration: { name: RENDERED.metadata.name } };

/** Objects that the examples lack, or have after the cut: the tenant's Secret and a waiting pod. */
const FIRST: readonly KubeObject[] = [
  meta('v1 Secret', { name: 'additional-pull-secret', namespace: 'kube-system' }),
  {
    ...meta('v1 Pod', POD),
    spec: { containers: [{ name: 'api', image: IMAGE }], imagePullSecrets: [{ name: 'pull' }] },
    status: {
      containerStatuses: [
        {
          name: 'api',
          image: IMAGE,
          state: { waiting: { reason: 'ImagePullBackOff', message: 'unauthorized' } },
        },
      ],
    },
  },
];

export const STANDALONE: string = dump([
  ...FIRST,
  ...examples('fleet/hosted/clusters/prod/*.yaml'),
  ...examples('credential-tests/manifests/profile.yaml'),
  SIDECARS,
]);
/** Objects of the platform: mirror sets, node pools, the credential provider. */
export const PLATFORM: string = dump([
  ...examples('fleet/management/mirror-sets.yaml'),
  ...examples('credential-provider/*.yaml').map((object) =>
    object.kind === 'MachineConfigPool'
      ? { ...object, spec: { ...(object.spec as object), ...ROLLED }, status: ROLLED }
      : object,
  ),
  RENDERED,
]);
export const MANAGEMENT: string = dump(
  examples('fleet/management/*.yaml').filter((object) => jsonOf(object).includes('prod')),
);
const KEPT = ['DaemonSet', 'PullStatus', 'Secret', 'ServiceAccount'];
const results = reconcileDumps(STANDALONE, PLATFORM).objects.flatMap(({ after }) =>
  after !== undefined && KEPT.includes(after.kind) ? [after] : [],
);
/** Objects of earlier runs, without the long ones. */
export const MADE: string = dump(results);
/** One of them, with what the engine noted on it. */
export const MANAGED: string = jsonOf(
  results.find(({ kind, metadata }) => kind === 'ServiceAccount' && metadata.managedFields !== undefined),
);
