/** A hosted cluster, its mirror sets and its pull secret, and releases in real registries. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { type Layout, ociLayout, type Registry, USER } from './docker-registry.ts';

const root = new URL('../..', import.meta.url).pathname;
export const SOURCE = 'quay.example.com/ocp';

export function cli(...args: readonly string[]): Promise<ProcessResult> {
  return runProcess([process.execPath, join(root, 'main.ts'), 'release', ...args], {
    cwd: root,
    deadlineMs: 60_000,
  });
}

export function releaseLayout(
  folder: string,
  version: string,
  components: Readonly<Record<string, string>>,
): Layout {
  const tags = Object.entries(components).map(([name, image]) => ({
    name,
    from: { kind: 'DockerImage', name: image },
  }));
  const references = JSON.stringify({ kind: 'ImageStream', metadata: { name: version }, spec: { tags } });
  return ociLayout(
    join(folder, `release-${version}`),
    { 'release-manifests/image-references': references },
    {
      labels: { 'io.openshift.release': version },
    },
  );
}

/** The management cluster: a HostedCluster, its secret, mirror sets that name two mirrors. */
export function clusterFolder(folder: string, mirrors: readonly string[], registry: Registry): string {
  const auth = Buffer.from(`${USER}:${registry.password}`).toString('base64');
  const config = Buffer.from(JSON.stringify({ auths: { [registry.host]: { auth } } })).toString('base64');
  const objects = [
    {
      apiVersion: 'hypershift.openshift.io/v1beta1',
      kind: 'HostedCluster',
      metadata: { name: 'prod', namespace: 'clusters' },
      spec: {
        pullSecret: { name: 'prod-pull' },
        imageContentSources: [{ source: SOURCE, mirrors: mirrors.slice(0, 1) }],
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/dockerconfigjson',
      metadata: { name: 'prod-pull', namespace: 'clusters' },
      data: { '.dockerconfigjson': config },
    },
    {
      apiVersion: 'config.openshift.io/v1',
      kind: 'ImageDigestMirrorSet',
      metadata: { name: 'release' },
      spec: { imageDigestMirrors: [{ source: SOURCE, mirrors }] },
    },
  ];
  const at = join(folder, 'cluster');
  mkdirSync(at, { recursive: true });
  for (const object of objects) writeFileSync(join(at, `${object.kind}.json`), JSON.stringify(object));
  return at;
}
