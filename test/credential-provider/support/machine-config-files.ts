/** Files of a MachineConfig, by path. */
import type { KubeObject } from '../../../runtime/core/kubernetes/object.ts';

export function filesOf(machineConfig: KubeObject | undefined): ReadonlyMap<string, string> {
  const { config } = (machineConfig?.spec ?? {}) as {
    readonly config?: {
      readonly storage?: { readonly files?: readonly { path: string; contents: { source: string } }[] };
    };
  };
  return new Map(
    (config?.storage?.files ?? []).map(({ path, contents }) => [
      path,
      Buffer.from(contents.source.replace(/^data:[^,]*,/, ''), 'base64').toString('utf8'),
    ]),
  );
}
