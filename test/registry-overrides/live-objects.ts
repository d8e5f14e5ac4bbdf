/** Objects of a management cluster for a real API server, and accessors. */
import type { Access } from '../../charts/shared/system.ts';
import { may, secretsByName } from '../../runtime/core/kubernetes/objects.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { CLUSTERS, controlPlaneNamespace } from '../support/hypershift.ts';
import { meta } from '../support/meta.ts';

export const VARIABLE = 'OPENSHIFT_IMG_OVERRIDES';

/** Definitions of a management cluster. */
export const MANAGEMENT_CRDS = [
  'hostedclusters.hypershift.openshift.io',
  'hostedcontrolplanes.hypershift.openshift.io',
  'imagedigestmirrorsets.config.openshift.io',
  'pullstatuses.pullwright.dev',
] as const;

export interface Deployment extends TestObject {
  readonly spec: { readonly template: { readonly spec: { readonly containers: readonly Container[] } } };
}

interface Container {
  readonly name: string;
  readonly image?: string;
  readonly env?: readonly { readonly name: string; readonly value: string }[];
}

export interface Status {
  readonly conditions: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly message: string;
  }[];
  readonly verdicts: readonly {
    readonly subject: string;
    readonly reason: string;
    readonly message: string;
  }[];
}

/** Permissions for discovery, besides those of the charts, with kubeconfigs in these namespaces; undefined: in all. */
export function discovery(namespaces: readonly (string | undefined)[]): readonly Access[] {
  return [
    {
      rules: [
        may(['get', 'list', 'watch'], 'hypershift.openshift.io', ['hostedcontrolplanes']),
        may(['get'], '', ['namespaces'], ['kube-system']),
      ],
    },
    ...namespaces.map((namespace) => ({
      namespace,
      rules: [secretsByName(['pullwright-kubeconfig'], ['get'])],
    })),
  ];
}

/** The PullStatus of a hosted cluster. */
export function statusOf(name: string): TestObject {
  return meta('pullwright.dev/v1alpha1 PullStatus', { name: `hostedcluster-${name}`, namespace: CLUSTERS });
}

/** The ConfigMap with its document. */
export function documentOf(name: string): TestObject {
  const metadata = { name: 'registry-overrides', namespace: controlPlaneNamespace(name) };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata };
}

export function variableOf(object: Deployment, container: string): string | undefined {
  const found = object.spec.template.spec.containers.find((one) => one.name === container);
  return found?.env?.find((one) => one.name === VARIABLE)?.value;
}

/** A Deployment of the control plane, like HyperShift's. */
export function deployment(cluster: string, name: string): TestObject {
  const labels = { app: name };
  const containers = [{ name, image: `quay.io/ocp/${name}:1`, env: [{ name: 'POD_NAME', value: name }] }];
  return {
    ...meta('apps/v1 Deployment', { name, namespace: controlPlaneNamespace(cluster) }),
    spec: {
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    },
  };
}

export function mirrors(
  entries: readonly (readonly [source: string, mirrors: readonly string[]])[],
  name = 'release',
): TestObject {
  const imageDigestMirrors = entries.map(([source, list]) => ({ source, mirrors: list }));
  return { ...meta('config.openshift.io/v1 ImageDigestMirrorSet', { name }), spec: { imageDigestMirrors } };
}
