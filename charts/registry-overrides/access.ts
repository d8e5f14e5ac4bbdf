/** Permissions of this system's reconciler (`runtime/registry-overrides`), by name where possible. */

import {
  type AccountBound,
  GOES,
  sameBut,
  sameMetadata,
} from '../../runtime/core/kubernetes/account-bounds.ts';
import { GLOBAL_PULL_SECRET, PLANES } from '../../runtime/core/kubernetes/hypershift.ts';
import {
  applyByName,
  EVENTS,
  may,
  type PolicyRule,
  READ,
  secretsByName,
} from '../../runtime/core/kubernetes/objects.ts';
import {
  CATALOGS as ALL_CATALOGS,
  CATALOG_CONTAINERS,
  CATALOG_STREAM,
  catalogAnnotation,
  catalogTriggers,
  DEFAULT_REGISTRY,
  IS_REGISTRY_OVERRIDES,
  TRIGGERS_ANNOTATION,
} from '../../runtime/registry-overrides/olm-catalogs.ts';
import { NO_OVERRIDES, OVERRIDES_ENV } from '../../runtime/registry-overrides/overrides.ts';
import { MAX_VALUE, TARGETS } from '../../runtime/registry-overrides/reconciler/deployments.ts';
import { CONFIG_MAP, DOCUMENT_KEY } from '../../runtime/registry-overrides/reconciler/reconcile.ts';
import type { Access, HostedPlace } from '../shared/system.ts';

const LISTS = ['containers', 'initContainers'];
const CATALOGS: readonly string[] = ALL_CATALOGS.map(({ name }) => `${name}-catalog`);

interface OverridesPlace extends HostedPlace {
  /** Whether the account may read its pull secret, to query registries. @default {false} */
  readonly askRegistries?: boolean | undefined;
}

/** Access in the management cluster. */
export function overridesAccess(places: readonly OverridesPlace[]): readonly Access[] {
  return [{ rules: CLUSTER_RULES }, ...places.flatMap(placeAccess)];
}

const CLUSTER_RULES: readonly PolicyRule[] = [
  may(READ, 'config.openshift.io', ['imagedigestmirrorsets', 'imagetagmirrorsets']),
  may(READ, 'operator.openshift.io', ['imagecontentsourcepolicies']),
  may(READ, 'hypershift.openshift.io', ['hostedclusters']),
  // Watched by label in all namespaces of hosted clusters.
  may(READ, 'pullwright.dev', ['pullstatuses']),
  EVENTS,
];

const ANNOTATIONS = 'params.metadata.?annotations';

/** Allowed repositories of catalogs, from annotations of the hosted cluster that HyperShift copies to its control plane. */
const PLACES = {
  name: 'places',
  expression: `[${JSON.stringify(DEFAULT_REGISTRY)}] + ${ANNOTATIONS}[?'${IS_REGISTRY_OVERRIDES}'].orValue('').split(',').filter(pair, pair.contains('=')).map(pair, pair.substring(pair.indexOf('=') + 1)).filter(place, place != '')`,
};
const INDEXES = {
  name: 'indexes',
  expression: JSON.stringify(Object.fromEntries(ALL_CATALOGS.map(({ name, index }) => [name, index]))),
};

/** CEL: whether the image is one that the reconciler selects for that catalog. */
function isOfCatalog(image: string, catalog: string): string {
  const repository = `${image}.find('^[^/@]+(/[^/:@]+)+')`;
  const found = `variables.places.exists(place, ${repository} == place || (${repository}.startsWith(place + '/') && ${repository}.endsWith('/' + variables.indexes[${catalog}])))`;
  return `(${ANNOTATIONS}[?'${catalogAnnotation(`' + ${catalog} + '`)}'].orValue('') == ${image} || ${found})`;
}

const SAME_IMAGE = 'one.?image == old.?image';
/** Validates only the characters of `registry=mirror` pairs: the exact pattern exceeds the CEL cost limit for long values. */
const PAIRS = `^(${NO_OVERRIDES}|([*A-Za-z0-9.:/_-]+=[A-Za-z0-9.:/_-]+(,|$))+)$`;
const OTHER_VARIABLES = `.?env.orValue([]).filter(variable, variable.name != '${OVERRIDES_ENV}')`;
/** CEL, for a container `one` and its `old` version. */
const SAME_CONTAINER = [
  sameBut('one', 'old', ['env', 'image']),
  `(${SAME_IMAGE} || (variables.catalog != '' && one.name in ${JSON.stringify(Object.values(CATALOG_CONTAINERS))}))`,
  `(one.?env == old.?env || (one.name == request.name && one${OTHER_VARIABLES} == old${OTHER_VARIABLES} && one.?env.orValue([]).all(variable, variable.name != '${OVERRIDES_ENV}' || (!has(variable.valueFrom) && size(variable.?value.orValue('')) <= ${MAX_VALUE} && variable.?value.orValue('').matches('${PAIRS}')))))`,
].join(' && ');
const listOf = (when: 'now' | 'was', list: string): string => `variables.${when}.?${list}.orValue([])`;
const PODS = [
  { name: 'now', expression: 'dyn(object.spec.template.spec)' },
  { name: 'was', expression: 'dyn(oldObject.spec.template.spec)' },
  {
    name: 'catalog',
    expression: "request.name.endsWith('-catalog') ? request.name.replace('-catalog', '') : ''",
  },
];

/** Admits changes of one variable in one container of the Deployments, and of images and triggers of catalogs. */
const DEPLOYMENT_FIELDS: AccountBound = {
  name: 'deployments',
  apiGroup: 'apps',
  resource: 'deployments',
  variables: [
    ...PODS,
    { name: 'triggers', expression: `object.metadata.?annotations[?'${TRIGGERS_ANNOTATION}'].orValue('[]')` },
  ],
  validations: [
    {
      expression: [
        "request.operation == 'UPDATE'",
        sameMetadata({ annotations: [TRIGGERS_ANNOTATION] }),
        `(oldObject.metadata.?annotations[?'${TRIGGERS_ANNOTATION}'].orValue('[]') == variables.triggers || (variables.catalog != '' && variables.triggers in ['[]', ${JSON.stringify(JSON.stringify(catalogTriggers('NAME')))}.replace('NAME', variables.catalog)]))`,
        sameBut('dyn(object.spec)', 'dyn(oldObject.spec)', ['template']),
        'object.spec.template.?metadata == oldObject.spec.template.?metadata',
        sameBut('variables.now', 'variables.was', LISTS),
        ...LISTS.flatMap((list) => [
          `${listOf('now', list)}.map(one, one.name) == ${listOf('was', list)}.map(one, one.name)`,
          `${listOf('now', list)}.all(one, ${listOf('was', list)}.exists(old, ${SAME_CONTAINER}))`,
        ]),
      ].join(' && '),
      message: `this account of Pullwright may change only ${OVERRIDES_ENV} and the images of catalogs in Deployments`,
    },
  ],
};

/** HyperShift reads MachineConfigs from the key `config` of labelled ConfigMaps in a control plane. */
const DOCUMENT: AccountBound = {
  name: 'overrides-document',
  apiGroup: '',
  resource: 'configmaps',
  resourceNames: [CONFIG_MAP],
  validations: [
    {
      expression: `${GOES}(object.?data.orValue({}).all(key, key == '${DOCUMENT_KEY}') && !has(object.binaryData))`,
      message: `this account of Pullwright may write only ${DOCUMENT_KEY} in ConfigMaps of control planes`,
    },
  ],
};

const CATALOG_IMAGE = 'this account of Pullwright may use catalogs only from sources of the hosted cluster';

/** Images of catalogs, in their Deployments and ImageStream. */
const CATALOG_IMAGES: readonly AccountBound[] = [
  {
    name: 'catalogs',
    apiGroup: 'apps',
    resource: 'deployments',
    operations: ['UPDATE'],
    resourceNames: CATALOGS,
    against: PLANES,
    variables: [...PODS, PLACES, INDEXES],
    validations: LISTS.map((list) => ({
      expression: `${listOf('now', list)}.all(one, ${listOf('was', list)}.exists(old, one.name == old.name && ${SAME_IMAGE}) || ${isOfCatalog('one.image', 'variables.catalog')})`,
      message: CATALOG_IMAGE,
    })),
  },
  {
    name: 'imagestreams',
    apiGroup: 'image.openshift.io',
    resource: 'imagestreams',
    operations: ['CREATE', 'UPDATE'],
    resourceNames: [CATALOG_STREAM],
    against: PLANES,
    variables: [PLACES, INDEXES],
    validations: [
      {
        expression: `!has(object.spec.dockerImageRepository) && object.spec.?tags.orValue([]).all(tag, tag.?from.?kind.orValue('') == 'DockerImage' && tag.name in variables.indexes && ${isOfCatalog('tag.from.name', 'tag.name')})`,
        message: CATALOG_IMAGE,
      },
    ],
  },
];

function placeAccess(place: OverridesPlace): readonly Access[] {
  const { hostedCluster, controlPlaneNamespace: namespace, askRegistries = false } = place;
  const pullSecret = secretsByName([GLOBAL_PULL_SECRET.platform], ['get']);
  return [
    {
      namespace,
      rules: [
        may([...READ, 'patch'], 'apps', ['deployments'], [...TARGETS, ...CATALOGS]),
        applyByName('', 'configmaps', [CONFIG_MAP]),
        applyByName('image.openshift.io', 'imagestreams', [CATALOG_STREAM]),
      ],
      bounds: [DEPLOYMENT_FIELDS, DOCUMENT, ...CATALOG_IMAGES],
    },
    {
      namespace: hostedCluster?.namespace,
      rules: [
        may(['get', 'create', 'patch', 'delete'], 'pullwright.dev', ['pullstatuses']),
        may(['get', 'patch'], 'pullwright.dev', ['pullstatuses/status']),
      ],
    },
    ...(askRegistries ? [{ namespace, rules: [pullSecret] }] : []),
  ];
}
