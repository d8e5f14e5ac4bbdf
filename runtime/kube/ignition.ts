/** Reads files from the Ignition config of a MachineConfig. */
import { gunzipSync } from 'node:zlib';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { recordOf } from '../core/record.ts';

interface Ignition {
  readonly storage?: {
    readonly files?: readonly {
      readonly path?: string;
      readonly contents?: { readonly source?: string; readonly compression?: string };
    }[];
  };
  readonly systemd?: {
    readonly units?: readonly {
      readonly name?: string;
      readonly contents?: string;
      readonly dropins?: readonly { readonly contents?: string }[];
    }[];
  };
}

/** The Ignition config of a MachineConfig; empty if it has none. */
export function ignitionOf(machineConfig: KubeObject | undefined): Ignition {
  return recordOf(recordOf(machineConfig?.spec)['config']);
}

/** Maximum uncompressed size. Configurations of container runtimes and the kubelet are smaller. */
const MAX_FILE = 4 * 1024 * 1024;

/** Text of a file in a MachineConfig; undefined if missing, remote, not UTF-8, or larger than 4 MiB uncompressed. */
export function ignitionText(machineConfig: KubeObject | undefined, path: string): string | undefined {
  const { files } = ignitionOf(machineConfig).storage ?? {};
  const { source = '', compression = '' } =
    (Array.isArray(files) ? files : []).findLast((one) => one?.path === path)?.contents ?? {};
  const [, type = '', body] = /^data:([^,]*),(.*)$/s.exec(source) ?? [];
  if (body === undefined || !['', 'gzip'].includes(compression)) return undefined;
  try {
    const isBase64 = type.endsWith(';base64');
    const bytes = isBase64 ? Buffer.from(body, 'base64') : Buffer.from(decodeURIComponent(body));
    const whole = compression === '' ? bytes : gunzipSync(bytes, { maxOutputLength: MAX_FILE });
    return new TextDecoder('utf-8', { fatal: true }).decode(whole);
  } catch {
    return undefined;
  }
}
