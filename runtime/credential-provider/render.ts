/** The files that a pool's nodes need: the kubelet's file and, where the kubelet does not know it yet, a drop-in. */
import { type NodeFile, variableDropIn } from '../../charts/credential-provider/machine-config.ts';
import { toYaml } from '../kube/yaml.ts';
import type { CredentialProviderConfig } from '../rules/credential-provider/config.ts';
import { flagVariable, kubeletCommand, serviceSettings } from '../rules/credential-provider/kubelet-unit.ts';
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
): readonly NodeFile[] {
  if (config === undefined) return [];
  const file = { path: platform.path, text: configText(config) };
  if (platform.isKnownToKubelet) return [file];
  return [file, { path: CREDENTIAL_PROVIDER.dropIn, text: variableDropIn(kubeletFlags(platform.path)) }];
}

/**
 * Whether the kubelet reads the platform's file, or the variable that points it there. A unit that was not found is taken to
 * be as the platform is known to make it.
 */
export function takesFlags({ isKnownToKubelet }: PlatformFile, unit: KubeletUnit): boolean {
  if (isKnownToKubelet || unit === undefined) return true;
  const settings = serviceSettings([unit]);
  return flagVariable(settings, [], kubeletCommand(settings))?.name === CREDENTIAL_PROVIDER.dropInVariable;
}
