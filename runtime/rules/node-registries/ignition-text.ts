/**
 * Text of one file of a MachineConfig: the operator writes small files as data URLs without compression.
 *
 * Source of the rule: Ignition 3, RFC 2397.
 */
import type { KubeObject } from '../kubernetes/object.ts';

interface IgnitionFile {
  readonly path?: string;
  readonly contents?: { readonly source?: string; readonly compression?: string };
}

/**
 * Undefined when there is no such file, or it is compressed, remote or not text.
 *
 * @example
 * ```ts
 * import { ignitionText } from './ignition-text.ts';
 * import assert from 'node:assert/strict';
 *
 * const files = [{ path: '/etc/a', contents: { source: 'data:text/plain;base64,b25l' } }];
 * const object = { apiVersion: 'v1', kind: 'MachineConfig', metadata: { name: 'a' }, spec: { config: { storage: { files } } } };
 * assert.equal(ignitionText(object, '/etc/a'), 'one');
 * assert.equal(ignitionText(object, '/etc/b'), undefined);
 * ```
 */
export function ignitionText(machineConfig: KubeObject, path: string): string | undefined {
  const { source = '', compression = '' } =
    filesOf(machineConfig).findLast((one) => one.path === path)?.contents ?? {};
  const match = /^data:([^,]*),(.*)$/s.exec(source);
  return match === null || compression !== '' ? undefined : decoded(match[1] ?? '', match[2] ?? '');
}

function filesOf(machineConfig: KubeObject): readonly IgnitionFile[] {
  const spec = machineConfig.spec as
    | { readonly config?: { readonly storage?: { readonly files?: readonly IgnitionFile[] } } }
    | undefined;
  const files = spec?.config?.storage?.files;
  return Array.isArray(files) ? files : [];
}

function decoded(type: string, body: string): string | undefined {
  try {
    const bytes = type.endsWith(';base64')
      ? Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0))
      : new TextEncoder().encode(decodeURIComponent(body));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
