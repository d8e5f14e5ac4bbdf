/** Objects of clusters, and the form of a case, for what is said of an installation. */

import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { CheckInput, CheckLevel } from '../../runtime/diagnose/checks/installation.ts';
import type { Case } from '../support/suite.ts';

export const NOTHING: CheckInput = {
  objects: [],
  plan: [],
  systems: [],
  nodes: 'linux',
  live: true,
  serverVersion: 'v1.36.0',
  rights: [],
};
export const object = (
  ...[apiVersion, kind, name, more = {}, namespace]: readonly [
    apiVersion: string,
    kind: string,
    name: string,
    more?: object,
    namespace?: string,
  ]
): KubeObject => ({
  apiVersion,
  kind,
  ...more,
  metadata: {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(more as Partial<KubeObject>).metadata,
  },
});
export const crd = (
  name: string,
  versions: readonly string[],
  properties: object = {},
  status?: object,
): KubeObject =>
  object('apiextensions.k8s.io/v1', 'CustomResourceDefinition', name, {
    spec: {
      group: name.slice(name.indexOf('.') + 1),
      names: { kind: 'Thing' },
      versions: versions.map((version) => ({
        name: version,
        served: true,
        schema: { openAPIV3Schema: { properties } },
      })),
    },
    ...(status === undefined ? {} : { status }),
  });
export const node = (
  name: string,
  {
    labels = { 'kubernetes.io/os': 'linux' },
    annotations = {},
    runtime = 'containerd://2.1',
    kubelet = 'v1.36.0',
  }: {
    labels?: Readonly<Record<string, string>>;
    annotations?: Readonly<Record<string, string>>;
    runtime?: string;
    kubelet?: string;
  } = {},
): KubeObject =>
  object('v1', 'Node', name, {
    metadata: { name, labels, annotations },
    status: { nodeInfo: { containerRuntimeVersion: runtime, kubeletVersion: kubelet } },
  });
export const namespace = (name: string, labels: Record<string, string> = {}): KubeObject =>
  object('v1', 'Namespace', name, { metadata: { name, labels } });
export const MCO: Readonly<Record<string, string>> = {
  'machineconfiguration.openshift.io/currentConfig': 'rendered-worker-1',
};
export const agent = (spec: object = {}, status?: object): KubeObject =>
  object(
    'apps/v1',
    'DaemonSet',
    'agent',
    {
      spec: {
        template: {
          spec: {
            serviceAccountName: 'agent',
            containers: [{ name: 'a', securityContext: { privileged: true } }],
            ...spec,
          },
        },
      },
      ...(status === undefined ? {} : { status }),
    },
    'kube-system',
  );
export const policy = (kind: string, status?: object): KubeObject =>
  object('admissionregistration.k8s.io/v1', kind, 'p', {
    spec: {},
    ...(status === undefined ? {} : { status }),
  });
export const scc = (users: readonly string[]): KubeObject =>
  object('security.openshift.io/v1', 'SecurityContextConstraints', 'privileged', {
    allowPrivilegedContainer: true,
    users,
  });
export const image = (name: string): object => ({
  spec: { template: { spec: { containers: [{ image: `ghcr.io/x/${name}:1` }] } } },
});

export interface Row extends Case {
  readonly input: Partial<CheckInput>;
  readonly check: string;
  readonly level: CheckLevel;
  readonly says: RegExp;
  readonly fix?: RegExp;
}
export const row = (
  ...[name, input, [check, level], says, fix]: readonly [
    name: string,
    input: Partial<CheckInput>,
    outcome: readonly [string, CheckLevel],
    says: RegExp,
    fix?: RegExp,
  ]
): Row => ({
  name,
  reason: 'what to do depends on it',
  input,
  check,
  level,
  says,
  ...(fix === undefined ? {} : { fix }),
});
