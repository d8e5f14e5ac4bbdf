/** What the reconciler of this system may do: what it reads and writes (`runtime/registry-overrides`), by name where it can be. */
import { GLOBAL_PULL_SECRET } from '../../runtime/rules/kubernetes/global-pull-secret.ts';
import { applyByName, type PolicyRule, secretsByName } from '../shared/objects.ts';
import type { Access } from '../shared/system.ts';
import { CATALOG_STREAM } from './objects.ts';

const READ = ['get', 'list', 'watch'] as const;
const DEPLOYMENTS: readonly string[] = ['control-plane-operator', 'ignition-server'];
const CATALOGS: readonly string[] = [
  'certified-operators-catalog',
  'community-operators-catalog',
  'redhat-marketplace-catalog',
  'redhat-operators-catalog',
];

/** One hosted cluster of the management cluster. */
export interface HostedPlace {
  readonly hostedClusterNamespace: string;
  readonly controlPlaneNamespace: string;
  /** Its pull secret is read, to ask registries with it. @default {false} */
  readonly askRegistries?: boolean;
}

/**
 * In the management cluster: for these hosted clusters, or for all of them (discovery) when there is no list.
 *
 * @param ask whether pull secrets are read where there is no list
 */
export function overridesAccess(places: readonly HostedPlace[] | undefined, ask = false): readonly Access[] {
  const asked = (place: HostedPlace | undefined): boolean => place?.askRegistries ?? ask;
  return [
    { rules: clusterRules() },
    ...(places ?? [undefined]).flatMap((place) => [
      ...placeAccess(place),
      ...(asked(place) ? [pullSecretAccess(place)] : []),
    ]),
  ];
}

function pullSecretAccess(place: HostedPlace | undefined): Access {
  return {
    ...(place === undefined ? {} : { namespace: place.controlPlaneNamespace }),
    rules: [secretsByName([GLOBAL_PULL_SECRET.platform], ['get'])],
  };
}

function clusterRules(): readonly PolicyRule[] {
  return [
    {
      apiGroups: ['config.openshift.io'],
      resources: ['imagedigestmirrorsets', 'imagetagmirrorsets'],
      verbs: READ,
    },
    { apiGroups: ['operator.openshift.io'], resources: ['imagecontentsourcepolicies'], verbs: READ },
    { apiGroups: ['hypershift.openshift.io'], resources: ['hostedclusters', 'nodepools'], verbs: READ },
    // Looked up by label over all namespaces of hosted clusters.
    { apiGroups: ['pullwright.dev'], resources: ['pullstatuses'], verbs: READ },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  ];
}

function placeAccess(place: HostedPlace | undefined): readonly Access[] {
  const controlPlane = place === undefined ? {} : { namespace: place.controlPlaneNamespace };
  const cluster = place === undefined ? {} : { namespace: place.hostedClusterNamespace };
  return [
    {
      ...controlPlane,
      rules: [
        {
          apiGroups: ['apps'],
          resources: ['deployments'],
          resourceNames: [...DEPLOYMENTS, ...CATALOGS],
          verbs: [...READ, 'patch'],
        },
        applyByName('', 'configmaps', ['registry-overrides']),
        applyByName('image.openshift.io', 'imagestreams', [CATALOG_STREAM]),
      ],
    },
    {
      ...cluster,
      rules: [
        {
          apiGroups: ['pullwright.dev'],
          resources: ['pullstatuses'],
          verbs: ['get', 'create', 'patch', 'delete'],
        },
        { apiGroups: ['pullwright.dev'], resources: ['pullstatuses/status'], verbs: ['get', 'patch'] },
      ],
    },
  ];
}
