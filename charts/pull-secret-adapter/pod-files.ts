/** What the pods of adapter and Sentinel find in their file system: credentials, authorities, the list of tenants. */
import { createHash } from 'node:crypto';
import { stringify } from 'yaml';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import type { EnvVar, Volume, VolumeMount } from '../shared/kubernetes.ts';
import { configMap, labels } from '../shared/objects.ts';
import { authoritiesOfPod } from './authorities.ts';
import { type AdapterOptions, TENANTS_FILE } from './options.ts';

type Tenants = NonNullable<AdapterOptions['tenants']>;

const TENANTS_CONFIG = 'pull-secret-adapter-tenants';
const [TENANTS_MOUNT, TENANTS_KEY] = [
  TENANTS_FILE.slice(0, TENANTS_FILE.lastIndexOf('/')),
  TENANTS_FILE.slice(TENANTS_FILE.lastIndexOf('/') + 1),
];

/** What the files come from. */
export interface FileSources {
  readonly brokerSecret?: string;
  readonly apiTokenSecret?: string;
  readonly apiTokenAudience?: string;
  readonly caConfigMap?: string;
  readonly adapterOptions?: AdapterOptions;
}

export interface PodFiles {
  readonly env: readonly EnvVar[];
  readonly mounts: readonly VolumeMount[];
  readonly volumes: readonly Volume[];
}

/** @param isAdapter Sentinel knows no tenants */
export function podFiles(input: FileSources, isAdapter: boolean): PodFiles {
  const { brokerSecret, caConfigMap, adapterOptions = {} } = input;
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
  const knowsTenants = isAdapter && adapterOptions.tenants !== undefined;
  return {
    env: authorities.env,
    mounts: [
      ...mounts,
      ...authorities.mounts,
      ...(knowsTenants ? [{ name: 'tenants', mountPath: TENANTS_MOUNT, readOnly: true }] : []),
    ],
    volumes: [
      ...sources,
      ...authorities.volumes,
      ...(knowsTenants ? [{ name: 'tenants', configMap: { name: TENANTS_CONFIG } }] : []),
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

/** The list of tenants, as `--tenants` reads it. */
export function tenantList(namespace: string, tenants: Tenants): KubeObject {
  const metadata = {
    name: TENANTS_CONFIG,
    namespace,
    labels: labels({ name: 'pull-secret-adapter', component: 'adapter' }),
  };
  return configMap(metadata, { [TENANTS_KEY]: tenantsText(tenants) });
}

/** The file is read when the adapter starts: another list is another pod. */
export function tenantsAnnotation(tenants: Tenants | undefined): Readonly<Record<string, string>> {
  if (tenants === undefined) return {};
  const hash = createHash('sha256').update(tenantsText(tenants)).digest('hex').slice(0, 16);
  return { 'pullwright.dev/tenants': hash };
}

function tenantsText(tenants: Tenants): string {
  return stringify(tenants, { sortMapEntries: true, lineWidth: 0 });
}
