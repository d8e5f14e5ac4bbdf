/**
 * The options of the credential provider's executable: one table for its flags, its help, the fields of the section and the
 * `args` in the kubelet's file.
 */
import { errnoOf, UsageError } from '../core/errors.ts';
import { isRecord, jsonOf, scalarText } from '../core/record.ts';

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
  authDir: { flag: 'auth-dir', kind: 'path', help: 'directory where CRI-O reads auth files' },
  globalAuthFile: { flag: 'global-auth-file', kind: 'path', help: "the node's own auth file" },
  apiServerEnv: { flag: 'apiserver-env', kind: 'path', help: 'file with KUBERNETES_SERVICE_HOST and _PORT' },
  caFile: { flag: 'ca-file', kind: 'path', help: 'the only trusted CA of the API server' },
  kubeconfigs: {
    flag: 'kubeconfig',
    kind: 'paths',
    help: "the kubelet's kubeconfig, or several: address and CA of the API server",
  },
  secrets: { flag: 'secrets', kind: 'secrets', help: 'list (one request) or named (get by name only)' },
  // Keeps images that were pulled with a namespace's credentials from other ServiceAccounts on the node.
  keepImagesPrivate: { flag: 'keep-images-private', kind: 'boolean', help: 'true or false' },
  // The kubelet delays the start of a container for as long.
  budgetMs: { flag: 'budget-ms', kind: 'milliseconds', help: 'timeout for the API server, 100 to 55000' },
  // Without a socket there, nothing is sent.
  journalSocket: { flag: 'journal-socket', kind: 'path', help: 'socket of the journal' },
  verbose: { flag: 'verbose', kind: 'boolean', help: 'true or false: log every pull source' },
} as const;

/** How the text of a flag is parsed. */
export type ProviderFlagKind = keyof typeof KINDS;

/** Type of the value of each kind of flag. */
type ValueOfKind<K extends ProviderFlagKind> = NonNullable<ReturnType<(typeof KINDS)[K][1]>>;

/** Options as configured; absent ones keep their defaults. */
export type ProviderSettings = {
  readonly [Field in keyof typeof PROVIDER_FLAGS]?: ValueOfKind<(typeof PROVIDER_FLAGS)[Field]['kind']>;
};

/** Paths without special characters of lists, shells, units or a pod's command. */
export const PROVIDER_PATH: RegExp = /^\/[A-Za-z0-9._/@+:=-]*$/;

/** What is expected, and the value of a text; undefined for a wrong one. */
const KINDS = {
  path: ['an absolute path', (text) => (text.startsWith('/') ? text : undefined)],
  paths: [
    'a list of absolute paths',
    (text): readonly string[] | undefined => {
      const paths = text === '' ? [] : text.split(',');
      return paths.every((path) => path.startsWith('/')) ? paths : undefined;
    },
  ],
  secrets: ['list or named', (text) => (text === 'list' || text === 'named' ? text : undefined)],
  boolean: ['true or false', (text) => (text === 'true' || text === 'false' ? text === 'true' : undefined)],
  milliseconds: [
    'a whole number from 100 to 55000',
    (text) => {
      const ms = Number(text);
      return Number.isInteger(ms) && ms >= 100 && ms <= 55_000 ? ms : undefined;
    },
  ],
} as const satisfies Readonly<Record<string, readonly [string, (text: string) => unknown]>>;

/** The settings by flag, in the order of the table. */
function flagsIn(settings: ProviderSettings) {
  return Object.entries(PROVIDER_FLAGS).flatMap(([field, { flag }]) => {
    const value = settings[field as keyof ProviderSettings];
    return value === undefined ? [] : [[flag, value] as const];
  });
}

/** The settings as arguments. */
export function providerArgs(settings: ProviderSettings): readonly string[] {
  return flagsIn(settings).map(([flag, value]) => `--${flag}=${String(value)}`);
}

/** The settings as a file beside the executable, for nodes where arguments cannot be passed. */
export function providerConfigText(settings: ProviderSettings): string {
  return `${JSON.stringify(Object.fromEntries(flagsIn(settings)), undefined, 2)}\n`;
}

// Options of a run: flags over a config file over the defaults of a node.

/** All options of a run; see {@link ProviderSettings}. */
export interface ProviderOptions extends Required<Omit<ProviderSettings, 'caFile'>> {
  /** The only CA to trust; absent: from {@link kubeconfigs}, then {@link caFiles}. */
  readonly caFile: string | undefined;
  readonly caFiles: readonly string[];
}

/** Paths of a node by CRI-O and the Machine Config Operator. */
export function defaultOptions(home: string | undefined): ProviderOptions {
  const own = home === undefined ? [] : [`${home}/.config/containers/registries.conf.d`];
  return {
    registriesConf: '/etc/containers/registries.conf',
    registriesConfDirs: [
      ...own,
      '/etc/containers/registries.rootful.conf.d',
      '/etc/containers/registries.conf.d',
      '/usr/share/containers/registries.rootful.conf.d',
      '/usr/share/containers/registries.conf.d',
    ],
    authDir: '/etc/crio/auth',
    globalAuthFile: '/var/lib/kubelet/config.json',
    apiServerEnv: '/etc/kubernetes/apiserver-url.env',
    caFile: undefined,
    kubeconfigs: [
      '/etc/kubernetes/kubelet.conf',
      '/var/lib/kubelet/kubeconfig',
      '/etc/kubernetes/kubeconfig',
    ],
    caFiles: ['/etc/kubernetes/pki/ca.crt', '/etc/kubernetes/ca.crt', '/etc/kubernetes/kubelet-ca.crt'],
    secrets: 'list',
    keepImagesPrivate: true,
    // The kubelet runs the provider at each start of a container, and delays it for as long.
    budgetMs: 1_800,
    journalSocket: '/run/systemd/journal/socket',
    verbose: false,
  };
}

/** Flag name to the option it sets. */
const OPTIONS: ReadonlyMap<string, keyof ProviderSettings> = new Map(
  Object.entries(PROVIDER_FLAGS).map(([field, { flag }]) => [flag, field as keyof ProviderSettings]),
);

/** Parsed flags and config file. */
export type ParsedArguments = ReturnType<typeof parseArguments>;

/**
 * Reads `--name value`, `--name=value` and the config file (a flat JSON object with the same names): that of `--config` over the
 * one at `beside`, if it exists. Ignores arguments that are not flags, which kubelet configurations pass to every provider.
 */
export function parseArguments(
  args: readonly string[],
  home: string | undefined,
  readConfig: (path: string) => string,
  beside?: string,
) {
  let options = defaultOptions(home);
  const text = beside === undefined ? undefined : textIfThere(beside, readConfig);
  if (text !== undefined && beside !== undefined) options = withSettings(options, configOf(beside, text));
  const given = flagsOf(args);
  const config = given.get('config');
  if (config !== undefined) options = withSettings(options, configOf(config, readConfig(config)));
  options = withSettings(
    options,
    [...given].filter(([name]) => !SWITCHES.includes(name)),
  );
  return {
    options,
    dryRun: given.has('dry-run'),
    check: given.has('check'),
    version: given.has('version-json') ? 'json' : given.has('version') ? 'text' : undefined,
    /** Output format of the dry run and the check. */
    output: outputOf(given.get('output') ?? 'text'),
  } as const;
}

/**
 * Path of the options file beside our executable, for a kubelet that passes no arguments. Undefined on Node, which is not our
 * executable.
 */
export function configBeside(executable: string): string | undefined {
  if (!('Bun' in globalThis)) return undefined;
  return `${executable.slice(0, executable.lastIndexOf('/'))}/crio-credential-provider.json`;
}

function textIfThere(path: string, readConfig: (path: string) => string): string | undefined {
  try {
    return readConfig(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw new UsageError(`Cannot read the config file "${path}": ${errnoOf(error) ?? 'unreadable'}`);
  }
}

const SWITCHES: readonly string[] = ['check', 'config', 'dry-run', 'output', 'version', 'version-json'];

function outputOf(text: string): 'text' | 'json' {
  if (text === 'text' || text === 'json') return text;
  throw new UsageError(`Flag "--output" is "${text}": expected text or json`);
}

const BARE: readonly string[] = ['check', 'dry-run', 'version', 'version-json', 'verbose'];

function flagsOf(args: readonly string[]): ReadonlyMap<string, string> {
  const given = new Map<string, string>();
  for (let index = 0; index < args.length; index += 1) {
    const match = /^--?([a-z-]+)(?:=([\s\S]*))?$/.exec(args[index] ?? '');
    if (match === null) continue;
    const [, name = '', text] = match;
    if (!SWITCHES.includes(name) && !BARE.includes(name) && !OPTIONS.has(name)) throw unknownFlag(name);
    if (text !== undefined) given.set(name, text);
    else if (BARE.includes(name)) given.set(name, 'true');
    else {
      index += 1;
      const value = args[index];
      if (value === undefined) throw new UsageError(`Flag "--${name}" has no value`);
      given.set(name, value);
    }
  }
  return given;
}

function unknownFlag(name: string): UsageError {
  return new UsageError(`Unknown flag "--${name}": expected one of ${[...OPTIONS.keys()].join(', ')}`);
}

function configOf(path: string, text: string): readonly (readonly [string, string])[] {
  const settings = jsonOf(text);
  if (settings === undefined) throw new UsageError(`Cannot read the config file "${path}": it is not JSON`);
  if (!isRecord(settings))
    throw new UsageError(
      `Cannot read the config file "${path}": expected a JSON object of flag names and values`,
    );
  return Object.entries(settings).map(([name, value]) => {
    const texts = (Array.isArray(value) ? value : [value]) as readonly unknown[];
    if (texts.every((one) => ['string', 'number', 'boolean'].includes(typeof one)))
      return [name, texts.map(scalarText).join(',')];
    throw new UsageError(
      `Cannot read the config file "${path}": ${JSON.stringify(name)} must be a string, a number or a list of these`,
    );
  });
}

function withSettings(options: ProviderOptions, settings: readonly (readonly [string, string])[]) {
  const changed: Record<string, unknown> = { ...options };
  for (const [name, text] of settings) {
    const option = OPTIONS.get(name);
    if (option === undefined) throw unknownFlag(name);
    const [wanted, valueOf] = KINDS[PROVIDER_FLAGS[option].kind];
    changed[option] = valueOf(text);
    if (changed[option] === undefined)
      throw new UsageError(`Flag "--${name}" is "${text}": must be ${wanted}`);
  }
  return changed as unknown as ProviderOptions;
}
