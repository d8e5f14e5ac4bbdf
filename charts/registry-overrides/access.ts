/** What the reconciler of this system may do: what it reads and writes (`runtime/registry-overrides`), by name where it can be. */
import { applyByName, type PolicyRule } from '../shared/objects.ts';
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
}

/** In the management cluster: for these hosted clusters, or for all of them (discovery) when there is no list. */
export function overridesAccess(places: readonly HostedPlace[] | undefined): readonly Access[] {
  return [{ rules: clusterRules() }, ...(places ?? [undefined]).flatMap(placeAccess)];
}

function clusterRules(): readonly PolicyRule[] {
  return [
    {
      apiGroups: ['config.openshift.io'],
      resources: ['imagedigestmirrorsets', 'imagetagmirrorsets'],
      verbs: READ,
    },
    { apiGroups: ['operator.openshift.io'], resources: ['imagecontentsourcepolicies'], verbs: READ },
    { apiGroups: ['hypershift.openshift.io'], resources: ['hostedclusters'], verbs: READ },
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
