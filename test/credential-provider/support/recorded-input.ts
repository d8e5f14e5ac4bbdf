/** Input of a recorded case: node, pod and API server. */
import { createHash } from 'node:crypto';
import type { SecretLike } from './api-double.ts';
import type { NodeFiles } from './node-double.ts';

export interface Input {
  readonly registriesConf: string | null;
  readonly dropins: Readonly<Record<string, string>>;
  readonly globalAuth: unknown;
  readonly stdin: string;
  readonly secrets: readonly SecretLike[];
  readonly api: number | string;
  readonly apiIgnoresFieldSelector: boolean;
  readonly apiserverUrlEnv: string | null;
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  readonly authDir: string | null;
  readonly existingAuthFile: string | null;
}

/** Text of the node's file: recorded as an object, or as text when it is broken. */
export function globalText({ globalAuth }: Input): string | undefined {
  if (globalAuth === null) return undefined;
  return typeof globalAuth === 'string' ? globalAuth : JSON.stringify(globalAuth);
}

export function globalEntries(input: Input): Readonly<Record<string, { auth?: string }>> {
  try {
    return JSON.parse(globalText(input) ?? '{}').auths ?? {};
  } catch {
    return {};
  }
}

export function imageOf({ stdin }: Input): string {
  const image = /"image"\s*:\s*"([^"]*)"/i.exec(stdin)?.[1] ?? '';
  return image;
}

export function fileNameOf(input: Input): string {
  return `${String(namespaceOf(input))}-${createHash('sha256').update(imageOf(input)).digest('hex')}.json`;
}

/** Invalid namespaces are rejected before any request. */
export function isRefusedToken(input: Input): boolean {
  const namespace = namespaceOf(input);
  return typeof namespace === 'string' && !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace);
}

export function tokenIsUsable(input: Input): boolean {
  return typeof namespaceOf(input) === 'string' && !isRefusedToken(input);
}

export function namespaceOf({ stdin }: Input): unknown {
  try {
    const token = String(JSON.parse(stdin).serviceAccountToken ?? '');
    return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))['kubernetes.io']
      ?.namespace;
  } catch {
    return undefined;
  }
}

/** The recorded bytes apply when the node's file has `auth` fields only. */
export function isPlain(input: Input): boolean {
  const text = globalText(input);
  if (text === undefined) return true;
  const whole = JSON.parse(text) as Record<string, unknown>;
  const fields = Object.values(globalEntries(input)).flatMap((entry) => Object.keys(entry ?? {}));
  return Object.keys(whole).join() === 'auths' && fields.every((field) => field === 'auth');
}

export function isAnswered({ api }: Input): boolean {
  return api === 200 || api === '429once';
}

export function filesOf(input: Input, port: number): NodeFiles {
  const { registriesConf, apiserverUrlEnv, existingAuthFile } = input;
  const globalAuth = globalText(input);
  return {
    ...(registriesConf === null ? {} : { registriesConf }),
    dropins: input.dropins,
    ...(globalAuth === undefined ? {} : { globalAuth }),
    ...(apiserverUrlEnv === null ? {} : { apiServerEnv: apiserverUrlEnv.replaceAll('%PORT%', String(port)) }),
    ...authDirOf(input),
    ...(existingAuthFile === null ? {} : { existing: { [fileNameOf(input)]: existingAuthFile } }),
  };
}

export function authDirOf({ authDir }: Input): { authDirMode?: number } {
  if (authDir === null || authDir === 'absent') return {};
  if (/^0o[0-7]+$/.test(authDir)) return { authDirMode: Number(authDir) };
  throw new Error(`unknown authDir "${authDir}"`);
}
