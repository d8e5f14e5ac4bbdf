/** The compiled executable under its kubelet name, on a node double, against an API double. */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { executable } from '../../support/executable.ts';
import { type ProcessOptions, type ProcessResult, runProcess } from '../../support/process.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { type ApiDouble, type ApiState, startApi } from './api-double.ts';
import {
  flagsOf,
  makeNode,
  type NodeDouble,
  type NodeFiles,
  pullSecret,
  requestFor,
  tokenFor,
} from './node-double.ts';

export const IMAGE = 'docker.io/library/nginx';
export const CONF =
  '[[registry]]\nlocation = "docker.io"\n\n[[registry.mirror]]\nlocation = "mirror.example.com"\n';
export const MEMBER: { readonly auth: string } = { auth: Buffer.from('user:password').toString('base64') };

const folder = tempFolder();
/** Path of the executable under its kubelet name. */
export const program: string = join(folder, 'crio-credential-provider');
symlinkSync(await executable(), program);

export interface Place {
  readonly api: ApiDouble;
  readonly node: NodeDouble;
}

/** A node, and an API server with one secret for the mirror. */
export async function place(
  state: Partial<ApiState> = {},
  options: Parameters<typeof startApi>[1] & { readonly files?: NodeFiles; readonly address?: string } = {},
): Promise<Place> {
  const secrets = [pullSecret('mirror', { 'mirror.example.com': MEMBER })];
  const api = await startApi({ secrets, ...state }, options);
  const files = {
    registriesConf: CONF,
    apiServerEnv: serverEnv(options.address ?? '127.0.0.1', api.port),
    ca: api.ca,
    authDirMode: 0o700,
  };
  return { api, node: makeNode({ ...files, ...options.files }) };
}

export function serverEnv(host: string, port: number): string {
  return `KUBERNETES_SERVICE_HOST='${host}'\nKUBERNETES_SERVICE_PORT='${port}'\n`;
}

export async function leave({ api, node }: Place): Promise<void> {
  node.remove();
  await api.close();
}

/** One run for `namespace`, with the environment of a service. */
export function call(
  node: NodeDouble,
  namespace: string,
  options: ProcessOptions & { readonly flags?: readonly string[] } = {},
): Promise<ProcessResult> {
  return runProcess([program, ...flagsOf(node), ...(options.flags ?? [])], {
    stdin: requestFor(IMAGE, tokenFor(namespace)),
    env: {},
    cwd: '/',
    ...options,
  });
}
