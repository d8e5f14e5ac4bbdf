/** Objects that decide where nodes pull from. */

export function set(kind: string, name: string, entries: readonly object[]): object {
  const list = {
    ImageDigestMirrorSet: 'imageDigestMirrors',
    ImageTagMirrorSet: 'imageTagMirrors',
    ImageContentSourcePolicy: 'repositoryDigestMirrors',
  }[kind];
  const apiVersion = kind.endsWith('Policy') ? 'operator.openshift.io/v1alpha1' : 'config.openshift.io/v1';
  return { apiVersion, kind, metadata: { name }, spec: { [list ?? '']: entries } };
}

export const idms = (name: string, source: string, ...mirrors: readonly string[]): object =>
  set('ImageDigestMirrorSet', name, [{ source, mirrors }]);

/** Object from a cluster: admitted by the API server, or older than its schema. */
export const ofCluster = (object: object): object => {
  const { metadata, ...rest } = object as { readonly metadata: object };
  return { ...rest, metadata: { ...metadata, creationTimestamp: '2023-05-01T00:00:00Z' } };
};

export const machineConfig = (conf: string): object => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: '99-worker-generated-registries' },
  spec: {
    config: {
      storage: {
        files: [
          {
            path: '/etc/containers/registries.conf',
            contents: { source: `data:;base64,${Buffer.from(conf).toString('base64')}` },
          },
        ],
      },
    },
  },
});

export const image = (spec: object): object => ({
  apiVersion: 'config.openshift.io/v1',
  kind: 'Image',
  metadata: { name: 'cluster' },
  spec: { registrySources: spec },
});

/** A row of a table of `mirrors`: objects in, exit code and lines out. */
export interface MirrorsRow {
  readonly name: string;
  readonly reason: string;
  readonly objects: readonly object[];
  readonly args: readonly string[];
  readonly code: number;
  readonly says: readonly RegExp[];
  readonly never?: RegExp;
}
