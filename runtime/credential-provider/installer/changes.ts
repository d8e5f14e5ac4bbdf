/** What a run would change on a node, by meaning: which file, and what of it is another thing afterwards. Pure. */
import { decodeCredentialProviderConfig, type YamlParser } from '../../rules/credential-provider/config.ts';
import { CREDENTIAL_PROVIDER } from '../../rules/credential-provider/platform.ts';
import { isOwnDropIn, NEUTRAL } from './managed.ts';
import { type InstallPlan, ownPointers } from './plan.ts';

/** One file as it is; undefined where there is none. */
type Text = string | undefined;

/** The node as it is. */
export interface PresentState {
  readonly dropInPath: string;
  readonly dropIn: Text;
  /** Text of the file that the kubelet is pointed at now, the present drop-in included. */
  readonly config: Text;
  /** Where the executable goes, and whether it is this program already; `foreign` for any other bytes. */
  readonly executablePath: string;
  readonly executable: 'absent' | 'same' | 'foreign';
  /** Files of ours in the folder of configurations. */
  readonly configFiles: readonly string[];
  /** Text of the planned configuration file, if it is there. */
  readonly plannedConfig: Text;
}

/** One thing that would happen. */
export interface HostChange {
  readonly action: 'create' | 'replace' | 'remove' | 'reload' | 'restart';
  /** A path of the host, or a unit. */
  readonly what: string;
  /** What differs, by meaning. */
  readonly details: readonly string[];
}

/** Changes in the order in which they would happen; none when the node is as it should be. */
export function nodeChanges(
  plan: InstallPlan & { readonly ok: true },
  present: PresentState,
  { unit, parseYaml }: { readonly unit: string; readonly parseYaml: YamlParser },
): readonly HostChange[] {
  const dropIn = dropInChange(plan.dropIn, present);
  return [
    ...executableChange(plan, present),
    ...configChange(plan, present, parseYaml),
    ...(dropIn === undefined
      ? []
      : [
          dropIn,
          { action: 'reload', what: 'systemd', details: [] } as const,
          {
            action: 'restart',
            what: unit,
            details: ['when it does not stay up, three times, the old drop-in is put back'],
          } as const,
        ]),
    ...present.configFiles
      .filter((path) => path !== plan.config?.path && path !== plan.environment?.path)
      .map((path): HostChange => ({ action: 'remove', what: path, details: ['once the kubelet is up'] })),
  ];
}

function executableChange(plan: InstallPlan & { ok: true }, present: PresentState): readonly HostChange[] {
  if (plan.config === undefined || present.executable === 'same') return [];
  return [
    {
      action: present.executable === 'absent' ? 'create' : 'replace',
      what: present.executablePath,
      details: ['a copy of this program, mode 0755'],
    },
  ];
}

function configChange(
  { config }: InstallPlan & { ok: true },
  present: PresentState,
  parseYaml: YamlParser,
): readonly HostChange[] {
  if (config === undefined || present.plannedConfig === config.text) return [];
  const action = present.plannedConfig === undefined ? 'create' : 'replace';
  const details = providerChanges(present.config, config.text, parseYaml);
  return [{ action, what: config.path, details }];
}

/** Providers that come, go, or are asked for other images. */
function providerChanges(before: Text, after: string, parseYaml: YamlParser): readonly string[] {
  const [old, next] = [providersOf(before, parseYaml), providersOf(after, parseYaml)];
  return [...new Set([...old.keys(), ...next.keys()])].flatMap((name) => {
    const [was, is] = [old.get(name), next.get(name)];
    if (was === undefined) return [`provider ${name}: added for ${(is ?? []).join(', ')}`];
    if (is === undefined) return [`provider ${name}: removed`];
    const added = is.filter((image) => !was.includes(image)).map((image) => `+${image}`);
    const removed = was.filter((image) => !is.includes(image)).map((image) => `-${image}`);
    const differs = [...added, ...removed];
    return [`provider ${name}: ${differs.length === 0 ? 'kept' : differs.join(' ')}`];
  });
}

function providersOf(text: Text, parseYaml: YamlParser): ReadonlyMap<string, readonly string[]> {
  const decoded = text === undefined ? undefined : decodeCredentialProviderConfig(text, parseYaml);
  const providers = decoded?.ok === true ? (decoded.config.providers ?? []) : [];
  return new Map(providers.map(({ name = '', matchImages = [] }) => [name, matchImages]));
}

function dropInChange(wanted: string, { dropIn, dropInPath }: PresentState): HostChange | undefined {
  if (dropIn === wanted || (dropIn === undefined && wanted === NEUTRAL)) return undefined;
  return {
    action: dropIn === undefined ? 'create' : 'replace',
    what: dropInPath,
    details: [
      ...(dropIn === undefined || isOwnDropIn(dropIn) ? [] : ['somebody else wrote what is there']),
      ...flagChanges(dropIn ?? '', wanted),
    ],
  };
}

function flagChanges(before: string, after: string): readonly string[] {
  const [old, next] = [ownPointers(before), ownPointers(after)];
  const flags = [
    ['--image-credential-provider-config', old.config, next.config],
    ['--image-credential-provider-bin-dir', old.binDir, next.binDir],
  ] as const;
  const changed = flags
    .filter(([, was, is]) => was !== is)
    .map(([flag, was, is]) => `${flag}: ${was ?? 'none'} -> ${is ?? 'none'}`);
  return changed.length > 0 ? changed : ['the other flags in the variable, as they are now'];
}

/** Where the executable goes by a plan. */
export function executablePath({ binDir }: InstallPlan & { readonly ok: true }): string {
  return `${binDir}/${CREDENTIAL_PROVIDER.name}`;
}
