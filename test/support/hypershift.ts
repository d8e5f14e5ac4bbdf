/** HostedCluster and HostedControlPlane, each as small as the real definition allows. */
import type { TestObject } from '../control-plane/resource-path.ts';
import { meta } from './meta.ts';

/** Namespace of the HostedClusters of tests. */
export const CLUSTERS = 'clusters';

/** Namespace in which HyperShift runs the control plane of a HostedCluster. */
export function controlPlaneNamespace(name: string): string {
  return `${CLUSTERS}-${name}`;
}

/** CRDs that HyperShift installs on a management cluster. */
export const HYPERSHIFT_CRDS = [
  'hostedcontrolplanes.hypershift.openshift.io',
  'hostedclusters.hypershift.openshift.io',
  'nodepools.hypershift.openshift.io',
  'machines.cluster.x-k8s.io',
] as const;

/** By which the API server of a hosted cluster is found. */
export function kubeconfigSecret(name: string, kubeconfig: string): TestObject & { readonly data: object } {
  return {
    ...meta('v1 Secret', { name: 'pullwright-kubeconfig', namespace: controlPlaneNamespace(name) }),
    data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
  };
}

const VERSION = '4.22.0';

/** Fields that both kinds share. */
const SHARED = {
  pullSecret: { name: 'pull-secret' },
  sshKey: { name: 'ssh-key' },
  platform: { type: 'None' },
  services: ['APIServer', 'OAuthServer', 'Konnectivity', 'Ignition'].map((service) => ({
    service,
    servicePublishingStrategy: { type: 'Route' },
  })),
};

function releaseOf(version: string): string {
  return `quay.io/openshift-release-dev/ocp-release:${version}-x86_64`;
}

export function hostedCluster(name: string, annotations: Readonly<Record<string, string>> = {}): TestObject {
  return {
    ...meta('hypershift.openshift.io/v1beta1 HostedCluster', { name, namespace: CLUSTERS, annotations }),
    spec: { release: { image: releaseOf(VERSION) }, ...SHARED },
  };
}

/** By it the hosted cluster is found. */
export function hostedControlPlane(name: string, version: string = VERSION): TestObject {
  return {
    ...meta('hypershift.openshift.io/v1beta1 HostedControlPlane', {
      name,
      namespace: controlPlaneNamespace(name),
      annotations: { 'hypershift.openshift.io/cluster': `${CLUSTERS}/${name}` },
    }),
    spec: {
      ...SHARED,
      releaseImage: releaseOf(version),
      infraID: name,
      issuerURL: 'https://kubernetes.default.svc',
      controllerAvailabilityPolicy: 'SingleReplica',
      infrastructureAvailabilityPolicy: 'SingleReplica',
      dns: { baseDomain: 'example.com' },
      etcd: {
        managementType: 'Managed',
        managed: { storage: { type: 'PersistentVolume', persistentVolume: { size: '8Gi' } } },
      },
      networking: {
        clusterNetwork: [{ cidr: '10.132.0.0/14' }],
        serviceNetwork: [{ cidr: '172.31.0.0/16' }],
      },
    },
  };
}

/** `spec.platform`, as small as the real definition allows. */
export function platformOf(type: 'None' | 'AWS'): object {
  if (type === 'None') return { type };
  const parts = [
    'controlPlaneOperator',
    'imageRegistry',
    'ingress',
    'kubeCloudController',
    'network',
    'nodePoolManagement',
    'storage',
  ];
  const rolesRef = Object.fromEntries(
    parts.map((part) => [`${part}ARN`, `arn:aws:iam::123456789012:role/${part}`]),
  );
  return { type, aws: { region: 'us-east-1', rolesRef } };
}
