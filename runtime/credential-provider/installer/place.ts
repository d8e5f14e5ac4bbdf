/** Where in the kubelet's command the flags go, or why nowhere. Pure. */

import {
  type FlagVariable,
  flagVariable,
  kubeletCommand,
  serviceSettings,
  type UnitCommand,
  unitValue,
} from '../kubelet-unit.ts';
import type { NodeFile } from '../objects.ts';
import { CREDENTIAL_PROVIDER } from '../platform.ts';

/** What systemd has made of the files of a unit, ours included. */
interface LoadedUnit {
  readonly command: UnitCommand;
  /** `NAME=value` of each variable that the unit sets itself. */
  readonly environment: readonly string[];
}

export interface PlaceInput {
  /** Unit file and drop-ins of the kubelet in the order in which they apply, without ours; empty when there is no unit. */
  readonly unit: readonly NodeFile[];
  /** Texts of the files of variables that the unit names, in order. @default {[]} */
  readonly environment?: readonly string[];
  /** The unit as systemd has read it. Absent: not known; the files are read as systemd reads them. */
  readonly loaded?: LoadedUnit | undefined;
  /** Text of the drop-in of our name. */
  readonly presentDropIn?: string | undefined;
}

/** Why nothing is written. */
export interface PlaceRefusal {
  readonly ok: false;
  readonly code: string;
  readonly message: string;
  readonly hint: string;
}

/** The variable that takes the flags, or why there is none. */
export function placeOf(input: PlaceInput): FlagVariable | PlaceRefusal {
  const { unit, environment = [], loaded } = input;
  const settings = serviceSettings(unit.map(({ text }) => text));
  const command = loaded?.command ?? kubeletCommand(settings);
  if (command === undefined || command.words.length === 0)
    return refusedPlace(
      'NoKubeletUnit',
      'there is no unit of the kubelet with an ExecStart line',
      'Set --unit and --unit-path to where it is',
    );
  const place = flagVariable(settings, environment, command);
  if (place === undefined)
    return refusedPlace(
      'NoPlaceForFlags',
      "the command of the kubelet's unit takes flags from no variable, and repeating it would leave a kubelet that does not start when the unit changes",
      'Put $KUBELET_EXTRA_ARGS at the end of its ExecStart, as kubeadm does, or give the two flags by hand',
    );
  return lateDropIn(unit, place) ?? misread(input, place) ?? place;
}

function lateDropIn(unit: PlaceInput['unit'], { name }: FlagVariable): PlaceRefusal | undefined {
  const ours = unitNameOf(CREDENTIAL_PROVIDER.dropIn);
  const late = unit.slice(1).find(({ path, text }) => unitNameOf(path) > ours && setsVariable(text, name));
  if (late === undefined) return undefined;
  return refusedPlace(
    'DropInOverridden',
    `"${late.path}" sets ${name} after "${ours}" does`,
    'Rename that drop-in to a name before it',
  );
}

/** The variable is set again by us: if systemd reads another value than we do, flags of the kubelet would be lost. */
function misread(
  { unit, loaded, presentDropIn }: PlaceInput,
  { name }: FlagVariable,
): PlaceRefusal | undefined {
  const texts = [...unit.map(({ text }) => text), ...(presentDropIn === undefined ? [] : [presentDropIn])];
  const read = unitValue(serviceSettings(texts), name);
  // A specifier is what systemd has put its value in for.
  if (loaded === undefined || read?.includes('%') === true) return undefined;
  const known = loaded.environment.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1);
  if ((known ?? '') === (read ?? '')) return undefined;
  return refusedPlace(
    'UnitNotUnderstood',
    `systemd has another value for ${name} than its files seem to say`,
    `Look at "systemctl show -P Environment ${unitNameOf(unit[0]?.path ?? '')}", and set ${name} on one line in plain quotes`,
  );
}

/** Whether a later drop-in takes the variable away again. */
function setsVariable(text: string, name: string): boolean {
  return serviceSettings([text]).some(
    (setting) =>
      setting.name === 'EnvironmentFile' || (setting.name === 'Environment' && setting.value.includes(name)),
  );
}

/** The last part of a path. */
export function unitNameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** A plan that writes nothing. */
export function refusedPlace(code: string, message: string, hint: string): PlaceRefusal {
  return { ok: false, code, message: `Cannot install the provider: ${message}`, hint };
}
