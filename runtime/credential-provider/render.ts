/** The files that a pool's nodes need: the kubelet's file and, where the kubelet does not know it yet, a drop-in. */
import {
  commandDropIn,
  type NodeFile,
  variableDropIn,
} from '../../charts/credential-provider/machine-config.ts';
import { toYaml } from '../kube/yaml.ts';
import type { CredentialProviderConfig } from '../rules/credential-provider/config.ts';
import {
  CREDENTIAL_PROVIDER,
  kubeletFlags,
  type PlatformFile,
} from '../rules/credential-provider/platform.ts';

/** The text, as the Machine Config Operator writes it: keys sorted, lists not indented, single quotes. */
export function configText(config: CredentialProviderConfig): string {
  return toYaml(config, { sortMapEntries: true, indentSeq: false, singleQuote: true, lineWidth: 0 });
}

/** What is known of the pool's kubelet unit: its whole text, drop-ins included; undefined when it was not found. */
export type KubeletUnit = string | undefined;

/** Files of a pool; none when no entry is left to render. */
export function poolFiles(
  platform: PlatformFile,
  config: CredentialProviderConfig | undefined,
  unit: KubeletUnit,
): readonly NodeFile[] {
  if (config === undefined) return [];
  const file = { path: platform.path, text: configText(config) };
  if (platform.isKnownToKubelet) return [file];
  return [file, { path: CREDENTIAL_PROVIDER.dropIn, text: dropIn(kubeletFlags(platform.path), unit) }];
}

/** Drop-in that brings flags to the kubelet, by the variable that its unit knows or by its whole command line. */
export function dropIn(flags: string, unit: KubeletUnit): string {
  const command =
    unit === undefined || unit.includes(CREDENTIAL_PROVIDER.dropInVariable) ? undefined : execStart(unit);
  return command === undefined ? variableDropIn(flags) : commandDropIn(flags, command);
}

/** The command of the last `ExecStart=` that sets one, on one line. */
function execStart(unit: string): string | undefined {
  const joined = unit.replace(/\\\n\s*/g, ' ');
  const commands = [...joined.matchAll(/^[ \t]*ExecStart=(.+)$/gm)].map(
    ([, command]) => command?.trim() ?? '',
  );
  return commands.at(-1)?.replace(/\s+/g, ' ');
}
