/** Needs of the containers of rendered workloads, each short enough for a table cell. */

import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { PodSpec, PodTemplate } from '../../runtime/core/kubernetes/objects.ts';

type Container = PodSpec['containers'][number];
type Volume = NonNullable<PodSpec['volumes']>[number];

export interface ContainerNeeds {
  /** `namespace/Kind/name/container` */
  readonly at: string;
  /** User, capabilities, root, network and token. */
  readonly rights: string;
  /** Ports that the container listens on. */
  readonly ports: string;
  /** Path, way and source, sorted. */
  readonly mounts: readonly string[];
}

/** One row for each container, init containers first. */
export function containerNeeds(objects: readonly KubeObject[]): readonly ContainerNeeds[] {
  return objects.flatMap((object) => {
    const pod = podOf(object);
    if (pod === undefined) return [];
    const { namespace = '', name } = object.metadata;
    return [...(pod.initContainers ?? []), ...pod.containers].map((container) => ({
      at: `${namespace}/${object.kind}/${name}/${container.name}`,
      rights: rights(pod, container),
      ports: ports(pod, container),
      mounts: mounts(pod, container),
    }));
  });
}

/** The pod that an object makes; undefined for what makes none. */
export function podOf(object: KubeObject): PodSpec | undefined {
  const spec = (object.spec ?? {}) as {
    readonly template?: PodTemplate;
    readonly jobTemplate?: { readonly spec: { readonly template: PodTemplate } };
  };
  if (object.kind === 'Pod') return object.spec as PodSpec;
  return (spec.jobTemplate?.spec.template ?? spec.template)?.spec;
}

function rights(pod: PodSpec, container: Container): string {
  return [
    userOf(pod, container),
    ...confinementOf(pod, container),
    pod.hostNetwork === true ? 'network of the node' : '',
    pod.hostPID === true || pod.hostIPC === true ? 'namespaces of the node' : '',
    pod.automountServiceAccountToken === true ? `token of ${pod.serviceAccountName}` : '',
  ]
    .filter((word) => word !== '')
    .join(', ');
}

function userOf(pod: PodSpec, { securityContext: own = {} }: Container): string {
  const user = own.runAsUser ?? pod.securityContext?.runAsUser;
  if (user !== undefined) return `user ${user}`;
  return (own.runAsNonRoot ?? pod.securityContext?.runAsNonRoot) === true
    ? 'any user but root'
    : 'user of the image';
}

function confinementOf(pod: PodSpec, { securityContext: own = {} }: Container): readonly string[] {
  const seccomp = own.seccompProfile ?? pod.securityContext?.seccompProfile;
  const mayEscalate = own.privileged !== true && own.allowPrivilegeEscalation !== false;
  return [
    own.privileged === true ? 'privileged' : `capabilities ${capabilitiesOf(own)}`,
    own.readOnlyRootFilesystem === true ? 'root read-only' : 'root writable',
    mayEscalate ? 'may escalate' : '',
    seccomp?.type === 'RuntimeDefault' ? 'seccomp' : '',
  ];
}

function capabilitiesOf({ capabilities = {} }: NonNullable<Container['securityContext']>): string {
  const { add = [], drop = [] } = capabilities;
  return drop.includes('ALL') ? add.join(' ') || 'none' : 'default';
}

/** Declared ports, and ports that only the probes name. */
function ports(pod: PodSpec, container: Container): string {
  const said = (container.ports ?? []).map(({ name, containerPort }) => `${name} ${containerPort}`);
  const probed = [container.startupProbe, container.livenessProbe, container.readinessProbe].flatMap(
    (probe) => {
      const { port, host } = probe?.httpGet ?? {};
      return typeof port === 'number' && !said.some((one) => one.endsWith(` ${port}`))
        ? [`${host ?? (pod.hostNetwork === true ? 'node' : 'pod')}:${port}`]
        : [];
    },
  );
  return [...new Set([...said, ...probed])].join(', ') || 'none';
}

function mounts(pod: PodSpec, container: Container): readonly string[] {
  return (container.volumeMounts ?? [])
    .map(({ name, mountPath, readOnly }) => {
      const volume = pod.volumes?.find((one) => one.name === name);
      const source = volume === undefined ? 'no volume' : sourceOf(volume);
      return `${mountPath} ${readOnly === true ? 'ro' : 'rw'} ${source}`;
    })
    .sort();
}

function sourceOf({ hostPath, secret, configMap, emptyDir, projected }: Volume): string {
  if (hostPath !== undefined) return `node ${hostPath.path} (${hostPath.type})`;
  if (secret !== undefined) return `Secret ${secret.secretName}${secret.optional === true ? ' if any' : ''}`;
  if (configMap !== undefined) return `ConfigMap ${configMap.name}`;
  if (emptyDir !== undefined) return 'empty';
  return projected === undefined ? 'unknown' : 'token for others';
}
