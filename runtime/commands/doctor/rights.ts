/** Rights that pulls and this command need. */
import type { ObjectStore } from '../../controller/store.ts';
import { GLOBAL_PULL_SECRET } from '../../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';

const RBAC = 'rbac.authorization.k8s.io';

interface Rule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly verbs?: readonly string[];
}

/**
 * Whether the credential provider, which asks as the pod's ServiceAccount, may read Secrets of the namespace. A ClusterRole is
 * not looked into: what it grants is believed.
 */
export function providerMayRead(store: ObjectStore, namespace: string, account: string): boolean {
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
  return store.list({ apiVersion: `${RBAC}/v1`, kind: 'RoleBinding' }, namespace).some((binding) => {
    const subjects = (binding['subjects'] ?? []) as readonly {
      kind?: string;
      name?: string;
      namespace?: string;
    }[];
    const isMeant = subjects.some(({ kind, name = '', namespace: where = namespace }) =>
      kind === 'Group'
        ? groups.includes(name)
        : kind === 'ServiceAccount' && name === account && where === namespace,
    );
    const ref = binding['roleRef'] as { kind?: string; name?: string } | undefined;
    if (!isMeant || ref === undefined) return false;
    if (ref.kind !== 'Role') return true;
    const role = store.get({ apiVersion: `${RBAC}/v1`, kind: 'Role', namespace, name: ref.name ?? '' });
    return ((role?.['rules'] ?? []) as readonly Rule[]).some(readsSecrets);
  });
}

function readsSecrets({ apiGroups = [], resources = [], verbs = [] }: Rule): boolean {
  const has = (list: readonly string[], one: string): boolean => list.includes(one) || list.includes('*');
  return has(apiGroups, '') && has(resources, 'secrets') && has(verbs, 'get');
}

/** What whoever runs `doctor` for pods of `namespace` needs; to be bound to them. */
export function doctorAccess(namespace: string): readonly KubeObject[] {
  const read = ['get', 'list'];
  const metadata = { name: 'pullwright-doctor' };
  const rules = (list: readonly (readonly [string, readonly string[]])[]): readonly object[] =>
    list.map(([group, resources]) => ({ apiGroups: [group], resources, verbs: read }));
  return [
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'Role',
      metadata: { ...metadata, namespace },
      rules: rules([
        ['', ['pods', 'secrets', 'serviceaccounts', 'events']],
        ['apps', ['deployments', 'statefulsets', 'daemonsets', 'replicasets']],
        ['batch', ['jobs', 'cronjobs']],
        [RBAC, ['roles', 'rolebindings']],
        ['pullwright.dev', ['pullstatuses']],
      ]),
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'Role',
      metadata: { ...metadata, namespace: GLOBAL_PULL_SECRET.namespace },
      rules: rules([
        ['', ['pods']],
        ['apps', ['daemonsets']],
        ['pullwright.dev', ['pullstatuses']],
      ]),
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata,
      rules: rules([
        ['', ['namespaces', 'nodes']],
        [
          'config.openshift.io',
          [
            'imagedigestmirrorsets',
            'imagetagmirrorsets',
            'criocredentialproviderconfigs',
            'images',
            'clusterversions',
          ],
        ],
        ['machineconfiguration.openshift.io', ['machineconfigs']],
        ['operator.openshift.io', ['imagecontentsourcepolicies']],
        ['pullwright.dev', ['pullsecretprofiles']],
        ['apps.kruise.io', ['sidecarsets']],
      ]),
    },
  ];
}
