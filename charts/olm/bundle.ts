/**
 * Renders a cluster of a fleet as an Operator Lifecycle Manager bundle (`registry+v1`). The ClusterServiceVersion contains the
 * reconciler's objects. Objects that OLM does not support are in `beside/`, for kubectl.
 *
 * Source of the format: operator-registry's `docs/design/operator-bundle.md` and the types of operator-framework/api.
 */
import { PullwrightError } from '../../runtime/core/errors.ts';
import { type KubeObject, pathPart } from '../../runtime/core/kubernetes/object.ts';
import type { CrdSpec } from '../../runtime/core/kubernetes/objects.ts';
import { VERSION } from '../../runtime/core/version.ts';
import { renderCluster } from '../app.ts';
import type { Fleet, FleetCluster } from '../fleet.ts';
import { type ManifestTree, renderTree, yamlOf } from '../output.ts';

// Our CRDs in ClusterServiceVersion format: form fields for a console, and an example of each kind.

interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
}

/** `spec.customresourcedefinitions.owned`: every version of every kind. */
export function ownedDefinitions(definitions: readonly KubeObject[]): readonly object[] {
  return definitions.flatMap((object) => {
    const { names, versions } = object['spec'] as CrdSpec;
    return versions.map(({ name, schema }) => {
      const { description, properties }: Schema = schema.openAPIV3Schema;
      return {
        name: object.metadata.name,
        version: name,
        kind: names.kind,
        displayName: words(names.kind),
        description: description ?? words(names.kind),
        specDescriptors: descriptors(properties?.['spec']),
        statusDescriptors: descriptors(properties?.['status']),
      };
    });
  });
}

function descriptors(schema: Schema | undefined): readonly object[] {
  return Object.entries(schema?.properties ?? {}).map(([path, { description }]) => ({
    path,
    displayName: words(path),
    ...(description === undefined ? {} : { description }),
    ...(path === 'conditions' ? { 'x-descriptors': ['urn:alm:descriptor:io.kubernetes.conditions'] } : {}),
  }));
}

/** `namespaceSelector`: `Namespace Selector` */
function words(name: string): string {
  const apart = name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ');
  return apart.slice(0, 1).toUpperCase() + apart.slice(1);
}

/** Starter examples per kind. */
const EXAMPLES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  PullSecretProfile: {
    spec: {
      namespaceSelector: { matchLabels: { registry: 'team' } },
      selector: {},
      secrets: [{ name: 'team-registry', sources: [{ namespace: 'platform', name: 'quay-robot' }] }],
    },
  },
  PullSecretGrant: {
    spec: {
      secrets: [{ name: 'quay-robot' }],
      profiles: [{ name: 'team-registry' }],
      namespaces: ['team-a', 'team-b'],
    },
  },
  PullStatus: {},
};

/** One example per kind, for the annotation `alm-examples`. */
export function almExamples(definitions: readonly KubeObject[]): readonly object[] {
  return definitions.flatMap((object) => {
    const { group, names, versions } = object['spec'] as CrdSpec;
    const [version] = versions;
    const example = EXAMPLES[names.kind];
    if (version === undefined || example === undefined) return [];
    return [
      {
        apiVersion: `${group}/${version.name}`,
        kind: names.kind,
        metadata: { name: 'team-registry' },
        ...example,
      },
    ];
  });
}

// RBAC in ClusterServiceVersion format: rules by ServiceAccount, from which OLM creates roles and bindings.

interface Binding extends KubeObject {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[];
}

/**
 * Extracts the rules bound to accounts of `namespace`, cluster-wide or in this namespace. Roles in other namespaces stay objects,
 * because OLM applies everything in the installation namespace. `covered` lists the objects that OLM creates itself.
 */
export function accountRights(objects: readonly KubeObject[], namespace: string) {
  const bindings = objects.filter(isBinding).filter((binding) => isOf(binding, namespace));
  const found = bindings.flatMap((binding) => {
    const role = objects.find(
      ({ kind, metadata }) =>
        kind === binding.roleRef.kind &&
        metadata.name === binding.roleRef.name &&
        (kind === 'ClusterRole' || metadata.namespace === namespace),
    );
    return role === undefined ? [] : [{ binding, role }];
  });
  const rulesOf = (kind: string) => {
    const byAccount = Map.groupBy(
      found.filter(({ binding }) => binding.kind === kind),
      ({ binding }) => binding.subjects[0]?.name ?? '',
    );
    return [...byAccount].map(([serviceAccountName, own]) => ({
      serviceAccountName,
      rules: own.flatMap(({ role }) => (role['rules'] ?? []) as readonly unknown[]),
    }));
  };
  const permissions = rulesOf('RoleBinding');
  const clusterPermissions = rulesOf('ClusterRoleBinding');
  const names = new Set([...permissions, ...clusterPermissions].map((one) => one.serviceAccountName));
  const accounts = objects.filter(
    ({ kind, metadata }) =>
      kind === 'ServiceAccount' && metadata.namespace === namespace && names.has(metadata.name),
  );
  const covered = [...found.flatMap(({ binding, role }) => [binding, role]), ...accounts];
  return { permissions, clusterPermissions, covered };
}

function isBinding(object: KubeObject): object is Binding {
  return object.kind === 'RoleBinding' || object.kind === 'ClusterRoleBinding';
}

/** Whether the binding is cluster-wide or in the namespace, with one subject from the namespace. */
function isOf({ kind, metadata, subjects }: Binding, namespace: string): boolean {
  const [subject, ...more] = subjects;
  return (
    (kind === 'ClusterRoleBinding' || metadata.namespace === namespace) &&
    more.length === 0 &&
    subject?.kind === 'ServiceAccount' &&
    subject.namespace === namespace
  );
}

const PACKAGE = 'pullwright';
const CHANNEL = 'alpha';
/** Namespaced kinds that OLM applies directly, in the installation namespace. */
const TAKEN: ReadonlySet<string> = new Set(['ConfigMap', 'Service', 'PodDisruptionBudget']);

/**
 * Renders `manifests/`, `metadata/`, `bundle.Dockerfile`, and `beside/` with a kustomization.
 *
 * @param replaces the previous version in the catalog; absent for the first
 * @throws PullwrightError `BundleCannotSay` unless the fleet is one stand-alone cluster with `delivery: reconciler`
 * @example
 * ```ts
 * import { readFleet } from '../fleet.ts';
 * import { renderBundle } from './bundle.ts';
 * import assert from 'node:assert/strict';
 *
 * const cluster = { name: 'a', delivery: 'reconciler', systems: { 'global-pull-secret': {} } } as const;
 * const tree = renderBundle(readFleet({ image: 'registry.example.com/pullwright:0.1.0', clusters: [cluster] }));
 * assert.ok(tree.has('manifests/pullwright.clusterserviceversion.yaml'));
 * ```
 */
export function renderBundle(fleet: Fleet, replaces?: string): ManifestTree {
  const cluster = clusterOf(fleet);
  const { namespace } = cluster.context;
  const { objects } = renderCluster(fleet, cluster);
  const { covered, ...rights } = accountRights(objects, namespace);
  const definitions = objects.filter(({ kind }) => kind === 'CustomResourceDefinition');
  const deployments = objects.filter(({ kind }) => kind === 'Deployment');
  const own = objects.filter(({ kind, metadata }) => metadata.namespace === namespace && TAKEN.has(kind));
  const inside = new Set([...definitions, ...deployments, ...covered, ...own]);
  const beside = objects.filter((object) => !inside.has(object));
  const service = serviceVersion(cluster, definitions, deployments, rights, replaces);
  const files = new Map([
    [`manifests/${PACKAGE}.clusterserviceversion.yaml`, yamlOf(service)],
    ...definitions.map(
      (object) => [`manifests/${pathPart('name', object.metadata.name)}.crd.yaml`, yamlOf(object)] as const,
    ),
    ...own.map((object) => {
      const { namespace: _, ...metadata } = object.metadata;
      const file = `${pathPart('name', metadata.name)}.${pathPart('kind', object.kind.toLowerCase())}.yaml`;
      return [`manifests/${file}`, yamlOf({ ...object, metadata })] as const;
    }),
    ['metadata/annotations.yaml', yamlOf({ annotations: ANNOTATIONS })],
    ['bundle.Dockerfile', dockerfile()],
    ...renderTree(beside, { folder: 'beside' }),
  ]);
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function clusterOf({ clusters }: Fleet): FleetCluster {
  const [cluster, ...more] = clusters;
  if (cluster === undefined || more.length > 0)
    throw cannotSay(`the fleet has ${clusters.length} clusters, expected one`);
  const { name, kind, delivery } = cluster.context;
  if (kind !== 'standalone') throw cannotSay(`cluster "${name}" is ${kind}, expected standalone`);
  if (delivery === 'reconciler') return cluster;
  throw cannotSay(
    `cluster "${name}" has delivery ${delivery}, expected reconciler: OLM does not install DaemonSets`,
  );
}

function cannotSay(problem: string): PullwrightError {
  return new PullwrightError(`Cannot render a bundle: ${problem}`, {
    code: 'BundleCannotSay',
    retryPolicy: 'terminal',
    hint: 'Use a fleet of one stand-alone cluster with delivery: reconciler',
  });
}

function serviceVersion(
  { context: { image, namespace } }: FleetCluster,
  definitions: readonly KubeObject[],
  deployments: readonly KubeObject[],
  rights: object,
  replaces: string | undefined,
): object {
  return {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    metadata: {
      name: `${PACKAGE}.v${VERSION}`,
      namespace,
      annotations: {
        'alm-examples': JSON.stringify(almExamples(definitions), null, 2),
        capabilities: 'Seamless Upgrades',
        categories: 'Security',
        containerImage: image,
        description: 'Pull credentials as code for Kubernetes and OpenShift',
        // Any older version may upgrade directly: all stored state stays readable.
        'olm.skipRange': `<${VERSION}`,
        'operatorframework.io/suggested-namespace': namespace,
      },
    },
    spec: {
      displayName: 'Pullwright',
      version: VERSION,
      ...(replaces === undefined ? {} : { replaces: `${PACKAGE}.v${replaces}` }),
      maturity: 'alpha',
      minKubeVersion: '1.30.0',
      description: DESCRIPTION,
      keywords: ['pull secret', 'registry', 'mirror', 'image', 'credential'],
      provider: { name: 'Pullwright' },
      links: [{ name: 'Documentation', url: 'https://pullwright.dev' }],
      // Cluster-wide, from one namespace.
      installModes: ['OwnNamespace', 'SingleNamespace', 'MultiNamespace', 'AllNamespaces'].map((type) => ({
        type,
        supported: type === 'AllNamespaces',
      })),
      install: {
        strategy: 'deployment',
        spec: {
          deployments: deployments.map(({ metadata, spec }) => ({
            name: metadata.name,
            label: metadata.labels,
            spec,
          })),
          ...rights,
        },
      },
      customresourcedefinitions: { owned: ownedDefinitions(definitions) },
      relatedImages: [{ name: 'pullwright', image }],
    },
  };
}

const DESCRIPTION = [
  'One declaration decides, for every namespace, pod and node, which credential is tried for which image at which mirror.',
  '',
  'Install it into its suggested namespace, with an OperatorGroup without targets. OLM rejects some kinds in a bundle: policies that',
  'limit writes of the reconciler, and Roles in other namespaces. They are in `beside/`: run `oc apply -k beside` first.',
].join('\n');

const ANNOTATIONS = {
  'operators.operatorframework.io.bundle.mediatype.v1': 'registry+v1',
  'operators.operatorframework.io.bundle.manifests.v1': 'manifests/',
  'operators.operatorframework.io.bundle.metadata.v1': 'metadata/',
  'operators.operatorframework.io.bundle.package.v1': PACKAGE,
  'operators.operatorframework.io.bundle.channels.v1': CHANNEL,
  'operators.operatorframework.io.bundle.channel.default.v1': CHANNEL,
};

function dockerfile(): string {
  const labels = Object.entries(ANNOTATIONS).map(([name, value]) => `LABEL ${name}=${value}`);
  return ['FROM scratch', ...labels, 'COPY manifests /manifests/', 'COPY metadata /metadata/', ''].join('\n');
}
