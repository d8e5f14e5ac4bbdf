/** What the reconciler of this system may do: what it reads and writes (`runtime/registry-overrides`), by name where it can be. */

import type { AccountBound } from '../../runtime/core/kubernetes/account-bounds.ts';
import { GLOBAL_PULL_SECRET } from '../../runtime/core/kubernetes/hypershift.ts';
import { applyByName, type PolicyRule, secretsByName } from '../../runtime/core/kubernetes/objects.ts';
import { CATALOG_STREAM } from '../../runtime/registry-overrides/objects.ts';
import { OVERRIDES_ENV } from '../../runtime/registry-overrides/overrides.ts';
import type { Access } from '../shared/system.ts';

const READ = ['get', 'list', 'watch'] as const;
const DEPLOYMENTS: readonly string[] = ['control-plane-operator', 'ignition-server'];
const CATALOGS: readonly string[] = [
  'certified-operators-catalog',
  'community-operators-catalog',
  'redhat-marketplace-catalog',
  'redhat-operators-catalog',
];

/** In CEL, of a container `one` and what it was, `old`. */
const OTHER_VARIABLES = `.?env.orValue([]).filter(variable, variable.name != '${OVERRIDES_ENV}')`;
const SAME_CONTAINER = [
  "one.all(key, key in ['env', 'image'] || old[?key] == one[?key])",
  "old.all(key, key == 'env' || key in one)",
  '(one.?image == old.?image || !variables.keepsImage)',
  `one${OTHER_VARIABLES} == old${OTHER_VARIABLES}`,
  `one.?env.orValue([]).all(variable, variable.name != '${OVERRIDES_ENV}' || !has(variable.valueFrom))`,
].join(' && ');

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
    { apiGroups: ['hypershift.openshift.io'], resources: ['hostedclusters'], verbs: READ },
    // Looked up by label over all namespaces of hosted clusters.
    { apiGroups: ['pullwright.dev'], resources: ['pullstatuses'], verbs: READ },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  ];
}

/**
 * Of the Deployments of a control plane one variable changes, and of catalogs the image. How many pods there are, and what they carry,
 * run as, mount and execute stays.
 */
const DEPLOYMENT_FIELDS: AccountBound = {
  name: 'deployments',
  apiGroup: 'apps',
  resource: 'deployments',
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  variables: [
    { name: 'spec', expression: "dyn(request.operation == 'DELETE' ? {} : object.spec)" },
    { name: 'old', expression: "dyn(request.operation == 'CREATE' ? {} : oldObject.spec)" },
    { name: 'now', expression: "dyn(request.operation == 'DELETE' ? {} : object.spec.template.spec)" },
    { name: 'was', expression: "dyn(request.operation == 'CREATE' ? {} : oldObject.spec.template.spec)" },
    { name: 'keepsImage', expression: `request.name in ${JSON.stringify(DEPLOYMENTS)}` },
  ],
  validations: [
    {
      expression: [
        "request.operation == 'UPDATE'",
        "variables.spec.all(key, key == 'template' || variables.old[?key] == variables.spec[?key])",
        'variables.old.all(key, key in variables.spec)',
        'variables.spec.template.?metadata == variables.old.template.?metadata',
        "variables.now.all(key, key in ['containers', 'initContainers'] || variables.was[?key] == variables.now[?key])",
        'variables.was.all(key, key in variables.now)',
        ...['containers', 'initContainers'].map(
          (list) =>
            `variables.now.?${list}.orValue([]).all(one, variables.was.?${list}.orValue([]).exists(old, ${SAME_CONTAINER}))`,
        ),
      ].join(' && '),
      message: `this account of Pullwright changes nothing of Deployments but ${OVERRIDES_ENV} and the images of catalogs`,
    },
  ],
};

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
      bounds: [DEPLOYMENT_FIELDS],
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
