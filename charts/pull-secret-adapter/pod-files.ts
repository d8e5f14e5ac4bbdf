/** What the pods of adapter and Sentinel find in their file system: credentials, authorities, the list of tenants. */
import { createHash } from 'node:crypto';
import { stringify } from 'yaml';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import type { EnvVar, Volume, VolumeMount } from '../shared/kubernetes.ts';
import { configMap, labels } from '../shared/objects.ts';
import { authoritiesOfPod } from './authorities.ts';
import { type AdapterOptions, TENANTS_FILE } from './options.ts';
import { MESSAGES_FILE, messagesOf, type SentinelInput } from './sentinel.ts';

/** A ConfigMap with one file, for one of the two programs. */
interface ConfigFile {
  readonly config: string;
  readonly volume: string;
  readonly path: string;
  readonly text: string;
}

/** What the files come from. */
export interface FileSources {
  readonly brokerSecret?: string;
  readonly apiTokenSecret?: string;
  readonly apiTokenAudience?: string;
  readonly caConfigMap?: string;
  readonly adapterOptions?: AdapterOptions;
  readonly sentinelOptions?: SentinelInput;
}

export interface PodFiles {
  readonly env: readonly EnvVar[];
  readonly mounts: readonly VolumeMount[];
  readonly volumes: readonly Volume[];
}

/** @param isAdapter the files of the adapter; otherwise of Sentinel */
export function podFiles(input: FileSources, isAdapter: boolean): PodFiles {
  const { brokerSecret, caConfigMap } = input;
  const sources: readonly Volume[] = [
    ...(brokerSecret === undefined ? [] : [secretVolume('broker', brokerSecret)]),
    ...apiVolumes(input),
  ];
  const mounts = sources.map(({ name }) => ({
    name,
    mountPath: `/etc/pullwright/${name}`,
    readOnly: true,
  }));
  const authorities =
    caConfigMap === undefined ? { env: [], mounts: [], volumes: [] } : authoritiesOfPod(caConfigMap);
  const own = configFile(input, isAdapter);
  return {
    env: authorities.env,
    mounts: [
      ...mounts,
      ...authorities.mounts,
      ...(own === undefined
        ? []
        : [{ name: own.volume, mountPath: folderAndName(own.path)[0], readOnly: true }]),
    ],
    volumes: [
      ...sources,
      ...authorities.volumes,
      ...(own === undefined ? [] : [{ name: own.volume, configMap: { name: own.config } }]),
    ],
  };
}

/** Readable by whatever user the platform gives the pod: nobody else is in it. */
function secretVolume(name: string, secretName: string): Volume {
  return { name, secret: { secretName, defaultMode: 0o444 } };
}

function apiVolumes({ apiTokenSecret, apiTokenAudience: audience }: FileSources): readonly Volume[] {
  if (apiTokenSecret !== undefined) return [secretVolume('api', apiTokenSecret)];
  if (audience === undefined) return [];
  const token = { serviceAccountToken: { audience, expirationSeconds: 3600, path: 'token' } };
  return [{ name: 'api', projected: { sources: [token], defaultMode: 0o444 } }];
}

/** What the fleet says in a file: the list of tenants for the adapter, the messages for Sentinel. */
function configFile(input: FileSources, isAdapter: boolean): ConfigFile | undefined {
  const { tenants } = input.adapterOptions ?? {};
  const messages = messagesOf(input.sentinelOptions ?? {});
  if (isAdapter)
    return tenants === undefined
      ? undefined
      : {
          config: 'pull-secret-adapter-tenants',
          volume: 'tenants',
          path: TENANTS_FILE,
          text: yamlText(tenants),
        };
  return messages === undefined
    ? undefined
    : {
        config: 'pull-secret-sentinel-messages',
        volume: 'messages',
        path: MESSAGES_FILE,
        text: yamlText(messages),
      };
}

/** The ConfigMap of that file; none when the fleet says nothing of it. */
export function podConfig(namespace: string, input: FileSources, isAdapter: boolean): readonly KubeObject[] {
  const file = configFile(input, isAdapter);
  if (file === undefined) return [];
  const [name, component] = isAdapter
    ? ['pull-secret-adapter', 'adapter']
    : ['pull-secret-sentinel', 'sentinel'];
  const metadata = { name: file.config, namespace, labels: labels({ name, component }) };
  return [configMap(metadata, { [folderAndName(file.path)[1]]: file.text })];
}

/** The file is read when the program starts: another text is another pod. */
export function podConfigAnnotation(
  input: FileSources,
  isAdapter: boolean,
): Readonly<Record<string, string>> {
  const file = configFile(input, isAdapter);
  if (file === undefined) return {};
  const hash = createHash('sha256').update(file.text).digest('hex').slice(0, 16);
  return { [`pullwright.dev/${file.volume}`]: hash };
}

function folderAndName(path: string): readonly [folder: string, name: string] {
  const at = path.lastIndexOf('/');
  return [path.slice(0, at), path.slice(at + 1)];
}

function yamlText(value: unknown): string {
  return stringify(value, { sortMapEntries: true, lineWidth: 0 });
}
