/**
 * The plan for a node without the Machine Config Operator: one drop-in and one file, or the reason for none. Pure.
 *
 * The file has its digest in its name and never changes, so restoring the old drop-in restores the whole old state.
 */

import { basename } from 'node:path';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { parseYaml } from '../../kube/yaml.ts';
import type { LoadedService } from '../../node/systemd.ts';
import { decodeCredentialProviderConfig, kubeletRefusal } from '../config.ts';
import {
  type FlagVariable,
  fileLine,
  flagVariable,
  type KubeletPointers,
  kubeletCommand,
  kubeletPointers,
  serviceSettings,
  unitLine,
  unitValue,
} from '../kubelet-unit.ts';
import { type MatchImageVerdict, mergeCredentialProviderConfig } from '../merge.ts';
import type { NodeFile } from '../objects.ts';
import { CREDENTIAL_PROVIDER, kubeletFlags } from '../platform.ts';
import { sha256Hex } from '../plugin/conf-files.ts';
import { configText, NODE_POOL_LABEL, tooOld } from '../pools.ts';
import { defaultOptions, PROVIDER_PATH } from '../provider-flags.ts';

export interface InstallInput {
  /** Unit file and drop-ins of the kubelet as systemd applies them, without ours; empty if the node has no such unit. */
  readonly unit: readonly NodeFile[];
  /** Texts of the unit's EnvironmentFiles, in order. @default {[]} */
  readonly environment?: readonly string[];
  /** The unit as systemd has loaded it, our drop-in included. Absent: unknown; `unit` is parsed instead. */
  readonly loaded?: Pick<LoadedService, 'command' | 'environment'> | undefined;
  /** Text of the drop-in with our name. */
  readonly presentDropIn?: string | undefined;
  /** The Node object of this node. */
  readonly node: KubeObject;
  readonly matchImages: readonly string[];
  readonly annotationKeys?: readonly string[];
  /** Arguments of the executable in the kubelet's file. */
  readonly args?: readonly string[];
  readonly pointers: KubeletPointers;
  /** Text of the file at `pointers.config`. */
  readonly present?: string | undefined;
  /** Files of the Machine Config Operator on the host. @default {[]} */
  readonly marks?: readonly string[];
  /** Also install where another system manages the node, or wrote the drop-in. @default {false} */
  readonly takeOver?: boolean;
  /** Folder of the kubelet's file. */
  readonly configDir: string;
}

/** Desired state of the node. */
export interface GoodPlan {
  readonly ok: true;
  /** Text of the drop-in. */
  readonly dropIn: string;
  /** The kubelet's file, written before the drop-in; absent when no entry is rendered. */
  readonly config?: NodeFile;
  /** EnvironmentFile, written before the drop-in; absent when the drop-in sets the variable itself. */
  readonly environment?: NodeFile | undefined;
  /** Folder of the executable, copied before the drop-in is written. */
  readonly binDir: string;
  /** The kubelet's file without the drop-in; absent: none. */
  readonly pointedAt?: string | undefined;
  readonly verdicts: readonly MatchImageVerdict[];
}

export type InstallPlan = GoodPlan | PlaceRefusal;

// Whether another system manages the kubelet of a node, so that the installer changes nothing. Pure.
//
// On a node of the Machine Config Operator the installer would overwrite a drop-in of the same name; the operator would restore
// it and mark the node as degraded, with restarts of the kubelet by both.

/** Files that exist only on nodes of the Machine Config Operator. */
export const MANAGED_MARKS: readonly string[] = [
  '/etc/machine-config-daemon/currentconfig',
  '/etc/machine-config-daemon/node-annotations.json',
  '/etc/ignition-machine-config-encapsulated.json',
];

const CURRENT = 'machineconfiguration.openshift.io/currentConfig';
const DESIRED = 'machineconfiguration.openshift.io/desiredConfig';

/**
 * The system that manages the node's kubelet and the evidence, as a clause; undefined for none. `marks`: those of
 * {@link MANAGED_MARKS} that exist on the host.
 *
 * Source of the rule: the Machine Config Daemon's annotations and state files, the label that HyperShift puts on nodes of a
 * NodePool.
 */
export function managedBy({ metadata }: KubeObject, marks: readonly string[]): string | undefined {
  const pool = metadata.labels?.[NODE_POOL_LABEL];
  if (pool !== undefined) return `NodePool "${pool}" manages this node (label ${NODE_POOL_LABEL})`;
  const operator = 'the Machine Config Operator manages this node';
  for (const key of [CURRENT, DESIRED]) {
    const value = metadata.annotations?.[key];
    if (value !== undefined) return `${operator} (annotation ${key} is "${String(value)}")`;
  }
  return marks[0] === undefined ? undefined : `${operator} (found file ${marks[0]})`;
}

/** A drop-in without effect. */
export const NEUTRAL: string = '# No image pattern is configured\n';

/** Names of files that an installer wrote, with their digests. */
export const OWN_FILE: RegExp = /^pullwright-[0-9a-f]{16}\.(?:yaml|env)$/;

/** Temporary files that a killed run left. */
export const OWN_LEFTOVER: RegExp = /^\.pullwright-[0-9a-f]{16}\.(?:yaml|env)\.tmp-[0-9a-f-]+$/;

/** Whether an installer wrote the drop-in: it names a file of ours, or has no effect. */
export function isOwnDropIn(text: string): boolean {
  return (
    text === NEUTRAL || /--image-credential-provider-config=\S*\/pullwright-[0-9a-f]{16}\.yaml\b/.test(text)
  );
}

// The variable of the kubelet's command that takes the flags, or why there is none. Pure.

/** Why nothing is written. */
type PlaceRefusal = ReturnType<typeof refusedPlace>;

/** The variable that takes the flags, or why there is none. */
function placeOf(input: InstallInput): FlagVariable | PlaceRefusal {
  const { unit, environment = [], loaded } = input;
  const settings = serviceSettings(unit.map(({ text }) => text));
  const command = loaded?.command ?? kubeletCommand(settings);
  if (command === undefined || command.words.length === 0)
    return refusedPlace(
      'NoKubeletUnit',
      'no systemd unit of the kubelet has an ExecStart line',
      'Set --unit and --unit-path to that unit',
    );
  const place = flagVariable(settings, environment, command);
  if (place === undefined)
    return refusedPlace(
      'NoPlaceForFlags',
      "the command of the kubelet's unit expands no variable, and a copied command would break the kubelet when the unit changes",
      'Put $KUBELET_EXTRA_ARGS at the end of its ExecStart, as kubeadm does, or set the two flags manually',
    );
  return lateDropIn(unit, place) ?? misread(input, place) ?? place;
}

function lateDropIn(unit: InstallInput['unit'], { name }: FlagVariable): PlaceRefusal | undefined {
  const ours = basename(CREDENTIAL_PROVIDER.dropIn);
  const late = unit.slice(1).find(({ path, text }) => basename(path) > ours && setsVariable(text, name));
  if (late === undefined) return undefined;
  return refusedPlace(
    'DropInOverridden',
    `"${late.path}" sets ${name} after "${ours}" does`,
    'Rename that drop-in to a name before it',
  );
}

/** Refuses when systemd has another value than we parse: our drop-in sets the variable again, and would drop flags. */
function misread({ unit, loaded, presentDropIn }: InstallInput, { name }: FlagVariable) {
  const texts = [...unit.map(({ text }) => text), ...(presentDropIn === undefined ? [] : [presentDropIn])];
  const read = unitValue(serviceSettings(texts), name);
  // systemd has expanded specifiers, so the values cannot be compared.
  if (loaded === undefined || read?.includes('%') === true) return undefined;
  const known = loaded.environment.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1);
  if ((known ?? '') === (read ?? '')) return undefined;
  return refusedPlace(
    'UnitNotUnderstood',
    `systemd's value of ${name} differs from its unit files`,
    `Run "systemctl show -P Environment ${basename(unit[0]?.path ?? '')}", and set ${name} on one line in plain quotes`,
  );
}

/** Whether a drop-in may set the variable. */
function setsVariable(text: string, name: string): boolean {
  return serviceSettings([text]).some(
    (setting) =>
      setting.name === 'EnvironmentFile' || (setting.name === 'Environment' && setting.value.includes(name)),
  );
}

/** A plan that writes nothing. */
function refusedPlace(code: string, message: string, hint: string) {
  return { ok: false, code, message: `Cannot install the provider: ${message}`, hint } as const;
}

/** Plan of an uninstallation: a drop-in without effect, on any node. Keeps a foreign drop-in. */
export function planNodeUninstall(presentDropIn: string | undefined, binDir: string, takeOver: boolean) {
  const isForeign = presentDropIn !== undefined && !isOwnDropIn(presentDropIn);
  const dropIn = isForeign && !takeOver ? presentDropIn : NEUTRAL;
  return { ok: true, dropIn, binDir, verdicts: [] } as const;
}

/** The plan. */
export function planInstall(input: InstallInput): InstallPlan {
  const { presentDropIn, takeOver = false } = input;
  const manager = takeOver ? undefined : managedBy(input.node, input.marks ?? []);
  if (manager !== undefined)
    return refusedPlace(
      'ManagedElsewhere',
      manager,
      'Exclude this node in nodeSelector: the reconciler renders MachineConfigs for such nodes. --take-over installs anyway',
    );
  // Removal must work on every node, even where an installation is refused.
  if (input.matchImages.length === 0) return planNodeUninstall(presentDropIn, binDirOf(input), takeOver);
  if (!takeOver && presentDropIn !== undefined && !isOwnDropIn(presentDropIn))
    return refusedPlace(
      'ForeignDropIn',
      `Pullwright did not write the drop-in "${basename(CREDENTIAL_PROVIDER.dropIn)}"`,
      'Remove it if unused; --take-over replaces it, and restores it if the kubelet does not start',
    );
  return planEntries(input);
}

function planEntries(input: InstallInput): InstallPlan {
  const [old] = tooOld(input.node);
  if (old !== undefined)
    return refusedPlace(
      'UnsupportedVersion',
      `kubelet and CRI-O 1.34 are required, found ${old}`,
      'Upgrade the node: an older kubelet rejects the file and does not start',
    );
  const present = presentConfig(input);
  if (!present.ok) return present;
  const place = placeOf(input);
  if ('ok' in place) return place;
  const binDir = binDirOf(input);
  const { config, verdicts } = mergeCredentialProviderConfig(present.config, input.matchImages, {
    optionalAnnotationKeys: input.annotationKeys,
    args: input.args,
  });
  if (config === undefined) return { ok: true, dropIn: NEUTRAL, binDir, verdicts };
  const text = configText(config);
  const refusal = kubeletRefusal(text, parseYaml);
  if (refusal !== undefined)
    return refusedPlace(
      'ConfigRefused',
      `the kubelet would reject the file: ${refusal}`,
      'Correct matchImages of the CRIOCredentialProviderConfig',
    );
  const path = ownFile(input, text, 'yaml');
  const flags = kubeletFlags(path, binDir);
  const variables = place.isSetByFile ? `${fileLine(place, flags)}\n` : undefined;
  const environment =
    variables === undefined ? undefined : { path: ownFile(input, variables, 'env'), text: variables };
  const setting = environment ? `EnvironmentFile=-${environment.path}` : unitLine(place, flags);
  return {
    ok: true,
    // The flags are in a comment as well, so that every drop-in names its files.
    dropIn: `[Service]\n# ${flags}\n${setting}\n`,
    config: { path, text },
    environment,
    pointedAt: input.pointers.config,
    binDir,
    verdicts,
  };
}

/** Path with the digest of the content: such a file never changes. */
function ownFile({ configDir }: InstallInput, text: string, ending: 'yaml' | 'env'): string {
  return `${configDir}/pullwright-${sha256Hex(text).slice(0, 16)}.${ending}`;
}

/** Provider flags in a drop-in of ours. */
export function ownPointers(dropIn: string): KubeletPointers {
  return kubeletPointers(dropIn.replace(/^# /gm, ''));
}

function binDirOf({ pointers }: InstallInput): string {
  return pointers.binDir ?? CREDENTIAL_PROVIDER.binDir;
}

function presentConfig({ pointers, present }: InstallInput) {
  if (pointers.config === undefined) return { ok: true, config: undefined } as const;
  const hint = 'Nothing is changed until this kubelet accepts the file';
  if (present === undefined)
    return refusedPlace(
      'ConfigMissing',
      `the kubelet's flag names "${pointers.config}", which does not exist`,
      hint,
    );
  const refusal = kubeletRefusal(present, parseYaml);
  const decoded = decodeCredentialProviderConfig(present, parseYaml);
  if (refusal === undefined && decoded.ok) return decoded;
  return refusedPlace(
    'ConfigInvalid',
    `the kubelet would reject its current file "${pointers.config}": ${refusal ?? ''}`,
    hint,
  );
}

/** Path of the executable. */
export function executablePath(binDir: string = CREDENTIAL_PROVIDER.binDir): string {
  return `${binDir}/${CREDENTIAL_PROVIDER.name}`;
}

// The kubeconfig of the executable. Pure.

/**
 * The arguments of the executable, with the kubeconfig of the running kubelet where the executable would not find it, or would
 * find another one first. `commandLine`: of the kubelet.
 */
export function withKubeconfig(
  args: readonly string[],
  commandLine: string,
  isThere: (path: string) => boolean,
): readonly string[] {
  const path = [...commandLine.matchAll(/ --?kubeconfig[= ]["']?([^\s"']+)/g)].at(-1)?.[1];
  const isGiven = args.some((arg) => /^--?kubeconfig(?:=|$)/.test(arg));
  if (path === undefined || isGiven || !PROVIDER_PATH.test(path)) return args;
  const { kubeconfigs } = defaultOptions(undefined);
  const at = kubeconfigs.indexOf(path);
  if (at !== -1 && !kubeconfigs.slice(0, at).some(isThere)) return args;
  return [...args, `--kubeconfig=${[path, ...kubeconfigs.filter((one) => one !== path)].join(',')}`];
}
