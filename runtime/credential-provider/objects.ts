/**
 * Our executable on nodes of OpenShift, where `/usr` is read-only and holds a plugin of the same name.
 *
 * A unit extracts the executable from our image into a writable folder, tries it, and mounts an overlay of that folder on the
 * platform's folder of plugins: all plugins of the platform stay, and ours hides the one with its name. The flags and the command
 * of the kubelet stay unchanged, and it does not wait: until the executable is available, the platform's own plugin runs.
 */

import type { KubeObject, OwnerReference } from '../core/kubernetes/object.ts';
import { dataUrl, kubernetesObject, machineConfigOf } from '../core/kubernetes/objects.ts';
import { CREDENTIAL_PROVIDER } from './platform.ts';
import { type ProviderSettings, providerConfigText } from './provider-flags.ts';

// The MachineConfig with the kubelet's file for the nodes of a pool.
// Same bytes as the Machine Config Operator's, empty objects included: a takeover must not restart a kubelet.

export interface NodeFile {
  /** Absolute path on the node. */
  readonly path: string;
  readonly text: string;
  /** Permission bits. @default {0o644} */
  readonly mode?: number;
}

/** A unit of systemd. */
export interface NodeUnit {
  readonly name: string;
  readonly text: string;
}

/** `97-<pool>-generated-credentialproviderconfig`. */
export function machineConfigName(pool: string): string {
  return `97-${pool}-generated-credentialproviderconfig`;
}

/**
 * The object; without files too, so that a pool shows that it was reconciled.
 *
 * @param pool `master`, `worker`, `arbiter`
 * @param owner the CRIOCredentialProviderConfig, so that its deletion removes this object too
 */
export function machineConfig(
  pool: string,
  files: readonly NodeFile[],
  owner?: OwnerReference,
  units: readonly NodeUnit[] = [],
): KubeObject {
  const metadata = { name: machineConfigName(pool), ...(owner && { ownerReferences: [owner] }) };
  return machineConfigOf(pool, metadata, ignition(files, units));
}

/** Ignition 3.5.0 with files and enabled units. */
export function ignition(files: readonly NodeFile[], units: readonly NodeUnit[] = []) {
  return {
    ignition: {
      config: { replace: { verification: {} } },
      proxy: {},
      security: { tls: {} },
      timeouts: {},
      version: '3.5.0',
    },
    kernelArguments: {},
    passwd: {},
    storage: files.length === 0 ? {} : { files: files.map(ignitionFile) },
    systemd:
      units.length === 0
        ? {}
        : { units: units.map(({ name, text }) => ({ name, enabled: true, contents: text })) },
  };
}

function ignitionFile({ path, text, mode = 0o644 }: NodeFile): object {
  return {
    contents: { compression: '', source: dataUrl(text), verification: {} },
    group: {},
    mode,
    overwrite: true,
    path,
    user: {},
  };
}

/** systemd drop-in that sets the variable of flags in the platform's kubelet unit. */
export function variableDropIn(flags: string): string {
  return [
    '[Service]',
    '# Prepends the credential provider flags to the existing Kubelet arguments',
    `Environment="${CREDENTIAL_PROVIDER.dropInVariable}=${flags}"`,
    '',
  ].join('\n');
}

/** Writable on such nodes; SELinux's policy labels files in a folder `bin` as executable. */
const FOLDER = '/usr/local/pullwright';
const SCRIPT = `${FOLDER}/deliver-credential-provider`;
const UNIT = 'pullwright-credential-provider.service';

/** Our executable for the nodes of a hosted cluster. */
export interface HostedExecutable {
  readonly image: string;
  readonly settings?: ProviderSettings;
}

/** One MachineConfig per pool of the Machine Config Operator. */
export function executableMachineConfigs({
  pools,
  ...own
}: HostedExecutable & { readonly pools: readonly string[] }): readonly KubeObject[] {
  const { files, units } = executableParts(own);
  const config = ignition(files, units);
  return pools.map((pool) =>
    machineConfigOf(pool, { name: `98-${pool}-pullwright-credential-provider` }, config),
  );
}

/** Files and unit alone, for a MachineConfig with others. */
function executableParts({ image, settings = {} }: HostedExecutable) {
  return {
    files: [
      { path: SCRIPT, text: script(image), mode: 0o755 },
      { path: `${FOLDER}/bin/${CREDENTIAL_PROVIDER.configName}`, text: providerConfigText(settings) },
    ],
    units: [{ name: UNIT, text: UNIT_TEXT }],
  };
}

const UNIT_TEXT = `[Unit]
Description=Pullwright's credential provider in the kubelet's folder of plugins
After=local-fs.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/bash ${SCRIPT}
ExecStop=/bin/umount -l ${CREDENTIAL_PROVIDER.binDir}
TimeoutStartSec=300
Restart=on-failure
RestartSec=15

[Install]
WantedBy=multi-user.target
`;

/** Image names that are safe in a script. */
export const IMAGE_NAME: RegExp = /^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/;

/** Scripts differ in the image's name only, which holds no special character of a shell. */
function script(image: string): string {
  if (!IMAGE_NAME.test(image))
    throw new TypeError(
      `Cannot render the executable: invalid value "${image}": must be the name of an image`,
    );
  return `#!/bin/bash
# Takes ${CREDENTIAL_PROVIDER.name} out of the image, and lays its folder over the platform's plugins.
set -euo pipefail
image='${image}'
plugins='${CREDENTIAL_PROVIDER.binDir}'
bin='${FOLDER}/bin'
program="$bin/${CREDENTIAL_PROVIDER.name}"

fetch() {
  podman pull --quiet --authfile /var/lib/kubelet/config.json "$image" > /dev/null
  container=$(podman create "$image")
  trap 'podman rm --force "$container" > /dev/null' EXIT
  podman cp "$container:/usr/bin/pullwright" "$program.new"
  chmod 755 "$program.new"
  if command -v restorecon > /dev/null; then restorecon -R "$bin"; fi
  # What does not run here (another architecture, a denied label) must not hide the platform's own.
  "$program.new" provider --version > /dev/null
  mv -f "$program.new" "$program"
  printf '%s' "$image" > "${FOLDER}/image"
}

if [ ! -x "$program" ] || [ "$(cat "${FOLDER}/image" 2> /dev/null)" != "$image" ]; then fetch; fi
if [ "$(findmnt --noheadings --output SOURCE --mountpoint "$plugins" | tail -n 1)" = pullwright ]; then umount -l "$plugins"; fi
mount -t overlay pullwright -o "ro,lowerdir=$bin:$plugins" "$plugins"
`;
}

// The MachineConfig of a hosted cluster: a ConfigMap beside the HostedCluster, for `spec.config` of its NodePools.

/** Name of the ConfigMap, for `spec.config` of each NodePool. */
export function hostedConfigMapName(hostedCluster: string): string {
  return `${hostedCluster}-crio-credential-provider`;
}

/** The object, with our executable: NodePools refer to one ConfigMap. */
export function hostedConfigMap(
  hostedCluster: { readonly namespace: string; readonly name: string },
  files: readonly NodeFile[],
  executable?: HostedExecutable,
): KubeObject {
  return kubernetesObject(
    'ConfigMap',
    { name: hostedConfigMapName(hostedCluster.name), namespace: hostedCluster.namespace },
    { data: { config: hostedConfigText(files, executable) } },
  );
}

/** The MachineConfig in it, as JSON, which is YAML. Without files the executable is omitted: the kubelet calls no provider. */
export function hostedConfigText(files: readonly NodeFile[], executable?: HostedExecutable): string {
  const own =
    executable === undefined || files.length === 0 ? { files: [], units: [] } : executableParts(executable);
  const object = machineConfig('worker', [...files, ...own.files], undefined, own.units);
  return `${JSON.stringify(object, null, 2)}\n`;
}
