/**
 * The MachineConfig that brings the kubelet's file to the nodes of a pool.
 *
 * Same bytes as the Machine Config Operator makes, empty objects included: taking over from it must not restart a kubelet.
 */
import { CREDENTIAL_PROVIDER } from '../../runtime/rules/credential-provider/platform.ts';
import type { KubeObject, OwnerReference } from '../../runtime/rules/kubernetes/object.ts';
import { dataUrl, machineConfigOf } from '../shared/machine-config.ts';
import type { IgnitionConfig, IgnitionFile } from '../shared/openshift.ts';

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

export interface MachineConfigInput {
  /** `master`, `worker`, `arbiter`. */
  readonly pool: string;
  readonly files: readonly NodeFile[];
  /** @default {[]} */
  readonly units?: readonly NodeUnit[];
  /** The CRIOCredentialProviderConfig, so that its deletion removes this object too. */
  readonly owner?: OwnerReference;
}

/** `97-<pool>-generated-credentialproviderconfig`. */
export function machineConfigName(pool: string): string {
  return `97-${pool}-generated-credentialproviderconfig`;
}

/**
 * The object. Without files it is there all the same, so that a pool shows that it was looked at.
 *
 * @example
 * ```ts
 * import { machineConfig } from './machine-config.ts';
 * import assert from 'node:assert/strict';
 *
 * const object = machineConfig({ pool: 'worker', files: [] });
 * assert.equal(object.metadata.name, '97-worker-generated-credentialproviderconfig');
 * ```
 */
export function machineConfig({ pool, files, units = [], owner }: MachineConfigInput): KubeObject {
  const metadata = {
    name: machineConfigName(pool),
    ...(owner === undefined ? {} : { ownerReferences: [owner] }),
  };
  return machineConfigOf(pool, metadata, ignition(files, units));
}

/** Ignition 3.5.0 with files and units that are enabled. */
export function ignition(files: readonly NodeFile[], units: readonly NodeUnit[] = []): IgnitionConfig {
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

function ignitionFile({ path, text, mode = 0o644 }: NodeFile): IgnitionFile {
  return {
    contents: { compression: '', source: dataUrl(text), verification: {} },
    group: {},
    mode,
    overwrite: true,
    path,
    user: {},
  };
}

/** systemd drop-in that sets the variable which the platform's kubelet unit puts into its command line. */
export function variableDropIn(flags: string): string {
  return [
    '[Service]',
    '# Prepends the credential provider flags to the existing Kubelet arguments',
    `Environment="${CREDENTIAL_PROVIDER.dropInVariable}=${flags}"`,
    '',
  ].join('\n');
}
