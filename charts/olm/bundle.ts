/**
 * A fleet's cluster as a bundle for the Operator Lifecycle Manager, in `registry+v1`: what the reconciler runs as is in the
 * ClusterServiceVersion, and what OLM takes no bundle with lies in `beside/`, for kubectl.
 *
 * Source of the shape: operator-registry's `docs/design/operator-bundle.md` and the types of operator-framework/api.
 */
import { PullwrightError } from '../../runtime/rules/errors.ts';
import { pathPart } from '../../runtime/rules/kubernetes/file-name.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { VERSION } from '../../runtime/rules/version.ts';
import { renderCluster } from '../app.ts';
import type { Fleet, FleetCluster } from '../fleet.ts';
import { type ManifestTree, renderTree, yamlOf } from '../output.ts';
import { almExamples, ownedDefinitions } from './definitions.ts';
import { accountRights } from './rights.ts';

const PACKAGE = 'pullwright';
const CHANNEL = 'alpha';
/** Of namespaced kinds, what OLM applies as it is; it moves each to the namespace of the installation. */
const TAKEN: ReadonlySet<string> = new Set(['ConfigMap', 'Service', 'PodDisruptionBudget']);

/**
 * `manifests/`, `metadata/`, `bundle.Dockerfile`, and `beside/` with a kustomization.
 *
 * @param replaces the version before this one, which the catalog has; absent for the first
 * @throws PullwrightError `BundleCannotSay` when the fleet is not one stand-alone cluster whose objects the reconciler applies
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
  const { permissions, clusterPermissions, covered } = accountRights(objects, namespace);
  const definitions = objects.filter(({ kind }) => kind === 'CustomResourceDefinition');
  const deployments = objects.filter(({ kind }) => kind === 'Deployment');
  const isOwn = ({ kind, metadata }: KubeObject): boolean =>
    metadata.namespace === namespace && TAKEN.has(kind);
  const inside = new Set([...definitions, ...deployments, ...covered, ...objects.filter(isOwn)]);
  const beside = objects.filter((object) => !inside.has(object));
  const parts = { cluster, definitions, deployments, permissions, clusterPermissions };
  const service = serviceVersion({ ...parts, ...(replaces === undefined ? {} : { replaces }) });
  const files = new Map([
    [`manifests/${PACKAGE}.clusterserviceversion.yaml`, yamlOf(service)],
    ...definitions.map(
      (object) => [`manifests/${pathPart('name', object.metadata.name)}.crd.yaml`, yamlOf(object)] as const,
    ),
    ...objects.filter(isOwn).map((object) => [fileOf(object), yamlOf(withoutNamespace(object))] as const),
    ['metadata/annotations.yaml', yamlOf({ annotations: annotations() })],
    ['bundle.Dockerfile', dockerfile()],
    ...renderTree(beside, { folder: 'beside' }),
  ]);
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function clusterOf({ clusters }: Fleet): FleetCluster {
  const [cluster, ...more] = clusters;
  const problem =
    cluster === undefined || more.length > 0
      ? `the fleet has ${clusters.length} clusters, expected one`
      : cluster.context.kind !== 'standalone'
        ? `cluster "${cluster.context.name}" is ${cluster.context.kind}, expected standalone`
        : cluster.context.delivery !== 'reconciler'
          ? `cluster "${cluster.context.name}" has delivery ${cluster.context.delivery}, expected reconciler: OLM brings no DaemonSet`
          : undefined;
  if (problem === undefined && cluster !== undefined) return cluster;
  throw new PullwrightError(`Cannot make a bundle: ${problem ?? ''}`, {
    code: 'BundleCannotSay',
    disposition: 'terminal',
    hint: 'Give a fleet of one stand-alone cluster with delivery: reconciler',
  });
}

interface Parts {
  readonly cluster: FleetCluster;
  readonly definitions: readonly KubeObject[];
  readonly deployments: readonly KubeObject[];
  readonly permissions: readonly unknown[];
  readonly clusterPermissions: readonly unknown[];
  readonly replaces?: string;
}

function serviceVersion({ cluster, definitions, deployments, replaces, ...rights }: Parts): object {
  const { image, namespace } = cluster.context;
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
        // Every older version may go to this one at once: none keeps anything that a later one could not read.
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
      // It serves the whole cluster, from one namespace.
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
  'Install it into its suggested namespace, with an OperatorGroup without targets. What OLM takes no bundle with, policies that',
  'bound what the reconciler may write and Roles in other namespaces, lies in `beside/` of the bundle: `oc apply -k beside` first.',
].join('\n');

function annotations(): Readonly<Record<string, string>> {
  const base = 'operators.operatorframework.io.bundle';
  return {
    [`${base}.mediatype.v1`]: 'registry+v1',
    [`${base}.manifests.v1`]: 'manifests/',
    [`${base}.metadata.v1`]: 'metadata/',
    [`${base}.package.v1`]: PACKAGE,
    [`${base}.channels.v1`]: CHANNEL,
    [`${base}.channel.default.v1`]: CHANNEL,
  };
}

function dockerfile(): string {
  const labels = Object.entries(annotations()).map(([name, value]) => `LABEL ${name}=${value}`);
  return ['FROM scratch', ...labels, 'COPY manifests /manifests/', 'COPY metadata /metadata/', ''].join('\n');
}

function fileOf({ kind, metadata }: KubeObject): string {
  return `manifests/${pathPart('name', metadata.name)}.${pathPart('kind', kind.toLowerCase())}.yaml`;
}

function withoutNamespace(object: KubeObject): KubeObject {
  const { namespace: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
