/** Reads files and units out of the Ignition config of a rendered MachineConfig. */
import { gunzipSync } from 'node:zlib';
import type { KubeObject } from '../../rules/kubernetes/object.ts';

/** Unpacked; what is larger is no configuration of a container runtime or a kubelet. */
const MAX_FILE = 4 * 1024 * 1024;

interface IgnitionConfig {
  readonly storage?: { readonly files?: readonly IgnitionFile[] };
  readonly systemd?: { readonly units?: readonly IgnitionUnit[] };
}

interface IgnitionFile {
  readonly path?: string;
  readonly contents?: { readonly source?: string; readonly compression?: string };
}

interface IgnitionUnit {
  readonly name?: string;
  readonly contents?: string;
  readonly dropins?: readonly { readonly name?: string; readonly contents?: string }[];
}

function configOf(machineConfig: KubeObject | undefined): IgnitionConfig {
  return (machineConfig?.spec as { readonly config?: IgnitionConfig } | undefined)?.config ?? {};
}

/**
 * Text of the file at `path`; undefined when the config has no such file or it cannot be read (a remote source, or more than 4 MiB when unpacked).
 *
 * @example
 * ```ts
 * import { fileText } from './ignition-files.ts';
 * import assert from 'node:assert/strict';
 *
 * const file = { path: '/etc/a', contents: { source: 'data:,one%20line' } };
 * const spec = { config: { storage: { files: [file] } } };
 * const object = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfig', metadata: { name: 'r' }, spec };
 * assert.equal(fileText(object, '/etc/a'), 'one line');
 * ```
 */
export function fileText(machineConfig: KubeObject | undefined, path: string): string | undefined {
  const files = configOf(machineConfig).storage?.files ?? [];
  const { source = '', compression } = files.findLast((one) => one.path === path)?.contents ?? {};
  const match = /^data:([^,]*),(.*)$/s.exec(source);
  return match === null ? undefined : decoded(match[1] ?? '', match[2] ?? '', compression === 'gzip');
}

function decoded(kind: string, body: string, isPacked: boolean): string | undefined {
  try {
    const bytes = kind.endsWith(';base64')
      ? Buffer.from(body, 'base64')
      : Buffer.from(decodeURIComponent(body));
    return (isPacked ? gunzipSync(bytes, { maxOutputLength: MAX_FILE }) : bytes).toString('utf8');
  } catch {
    return undefined;
  }
}

/** A unit with its drop-ins, one after the other, but for the drop-in that is ours. */
export function unitText(machineConfig: KubeObject | undefined, name: string): string | undefined {
  const unit = (configOf(machineConfig).systemd?.units ?? []).findLast((one) => one.name === name);
  if (unit?.contents === undefined) return undefined;
  return [unit.contents, ...(unit.dropins ?? []).map(({ contents }) => contents ?? '')].join('\n');
}
