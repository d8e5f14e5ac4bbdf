/**
 * The options of the credential provider's executable: one table from which its flags, its help, the fields of the section and
 * the `args` in the kubelet's file are made.
 */

/** By field, in the order of the help. */
export const PROVIDER_FLAGS = {
  registriesConf: {
    flag: 'registries-conf',
    kind: 'path',
    help: 'main file of the mirror configuration',
  },
  // A file of the same name in an earlier folder hides the later one.
  registriesConfDirs: {
    flag: 'registries-conf-dir',
    kind: 'paths',
    help: 'folders of drop-ins, separated by commas',
  },
  authDir: { flag: 'auth-dir', kind: 'path', help: 'folder that CRI-O takes auth files from' },
  globalAuthFile: { flag: 'global-auth-file', kind: 'path', help: "the node's own auth file" },
  apiServerEnv: { flag: 'apiserver-env', kind: 'path', help: 'file with KUBERNETES_SERVICE_HOST and _PORT' },
  caFile: { flag: 'ca-file', kind: 'path', help: 'CA of the API server, and no other' },
  kubeconfigs: {
    flag: 'kubeconfig',
    kind: 'paths',
    help: "the kubelet's kubeconfig, or several: address and CA of the API server",
  },
  secrets: { flag: 'secrets', kind: 'secrets', help: 'list (one request) or named (get by name only)' },
  // Keeps images that were pulled with a namespace's credentials from other ServiceAccounts on the node.
  keepImagesPrivate: { flag: 'keep-images-private', kind: 'boolean', help: 'true or false' },
  // The kubelet holds the start of a container up for as long.
  budgetMs: { flag: 'budget-ms', kind: 'milliseconds', help: 'for asking the API server, 100 to 55000' },
  // No socket there: nothing is sent.
  journalSocket: { flag: 'journal-socket', kind: 'path', help: 'socket of the journal' },
  verbose: { flag: 'verbose', kind: 'boolean', help: 'true or false: a line for every source' },
} as const;

/** What a flag of each kind says. */
interface ValueOfKind {
  readonly path: string;
  readonly paths: readonly string[];
  readonly secrets: 'list' | 'named';
  readonly boolean: boolean;
  readonly milliseconds: number;
}

/** How the text of a flag is read. */
export type ProviderFlagKind = keyof ValueOfKind;

/** Options as a person sets them; what is absent keeps its default. */
export type ProviderSettings = {
  readonly [Field in keyof typeof PROVIDER_FLAGS]?: ValueOfKind[(typeof PROVIDER_FLAGS)[Field]['kind']];
};

/** What a path may hold: nothing that a list, a shell, a unit or a pod's command would read as something else. */
export const PROVIDER_PATH: RegExp = /^\/[A-Za-z0-9._/@+:=-]*$/;

/** What is wrong with a value for a flag, as the end of `Flag ... is "x": `; undefined when nothing is. */
export function flagFault(kind: ProviderFlagKind, value: unknown): string | undefined {
  const [wanted, holds] = KINDS[kind];
  return holds(value) ? undefined : `must be ${wanted}`;
}

const KINDS: Readonly<
  Record<ProviderFlagKind, readonly [wanted: string, holds: (value: unknown) => boolean]>
> = {
  path: ['an absolute path', isAbsolute],
  paths: ['a list of absolute paths', (value) => Array.isArray(value) && value.every(isAbsolute)],
  secrets: ['list or named', (value) => value === 'list' || value === 'named'],
  boolean: ['true or false', (value) => typeof value === 'boolean'],
  milliseconds: [
    'a whole number from 100 to 55000',
    (value) => Number.isInteger(value) && Number(value) >= 100 && Number(value) <= 55_000,
  ],
};

function isAbsolute(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith('/');
}

/** What the settings say, by flag, in the order of the table. */
function flagsIn(
  settings: ProviderSettings,
): readonly (readonly [flag: string, value: NonNullable<ProviderSettings[keyof ProviderSettings]>])[] {
  return Object.entries(PROVIDER_FLAGS).flatMap(([field, { flag }]) => {
    const value = settings[field as keyof ProviderSettings];
    return value === undefined ? [] : [[flag, value] as const];
  });
}

/**
 * The arguments that say the same as the settings.
 */
export function providerArgs(settings: ProviderSettings): readonly string[] {
  return flagsIn(settings).map(([flag, value]) => `--${flag}=${String(value)}`);
}

/**
 * The same options as a file beside the executable, for nodes where arguments cannot be passed.
 */
export function providerConfigText(settings: ProviderSettings): string {
  return `${JSON.stringify(Object.fromEntries(flagsIn(settings)), undefined, 2)}\n`;
}
