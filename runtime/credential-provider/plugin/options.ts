/** Where the provider reads and writes, and how long it may take: flags over a config file over the paths of a node. */
import { UsageError } from '../../rules/errors.ts';

export interface ProviderOptions {
  readonly registriesConf: string;
  /** Folders of drop-ins; a file of the same name in an earlier folder hides the later one. */
  readonly registriesConfDirs: readonly string[];
  readonly authDir: string;
  /** The node's own auth file. */
  readonly globalAuthFile: string;
  /** Dotenv file with the API server's address. */
  readonly apiServerEnv: string;
  /** The CA to use and no other; absent: looked for in {@link kubeconfigs}, then {@link caFiles}. */
  readonly caFile: string | undefined;
  readonly kubeconfigs: readonly string[];
  readonly caFiles: readonly string[];
  /** `list` reads the namespace's secrets with one request, falling back to names; `named` asks only for named secrets. */
  readonly secrets: 'list' | 'named';
  /** Keep images that were pulled with a namespace's credentials from other namespaces on the node. */
  readonly keepImagesPrivate: boolean;
  /** For the whole run; the kubelet kills the provider after a minute. */
  readonly budgetMs: number;
  /** Where the journal takes entries; no socket there: nothing is sent. */
  readonly journalSocket: string;
  readonly verbose: boolean;
}

/** The paths of a node, as CRI-O and the Machine Config Operator lay it out. */
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
    budgetMs: 10_000,
    journalSocket: '/run/systemd/journal/socket',
    verbose: false,
  };
}

/** Flag name to the option it sets, how its text is read, and its line in the help. */
export const FLAGS: Readonly<Record<string, Flag>> = {
  'registries-conf': {
    option: 'registriesConf',
    read: pathOf,
    help: 'main file of the mirror configuration',
  },
  'registries-conf-dir': {
    option: 'registriesConfDirs',
    read: listOf,
    help: 'folders of drop-ins, separated by commas',
  },
  'auth-dir': { option: 'authDir', read: pathOf, help: 'folder that CRI-O takes auth files from' },
  'global-auth-file': { option: 'globalAuthFile', read: pathOf, help: "the node's own auth file" },
  'apiserver-env': {
    option: 'apiServerEnv',
    read: pathOf,
    help: 'file with KUBERNETES_SERVICE_HOST and _PORT',
  },
  'ca-file': { option: 'caFile', read: pathOf, help: 'CA of the API server' },
  kubeconfig: {
    option: 'kubeconfigs',
    read: listOf,
    help: "the kubelet's kubeconfig, or several: address and CA of the API server",
  },
  secrets: { option: 'secrets', read: modeOf, help: 'list (one request) or named (get by name only)' },
  'keep-images-private': { option: 'keepImagesPrivate', read: flagOf, help: 'true or false' },
  'budget-ms': { option: 'budgetMs', read: millisecondsOf, help: 'for the whole run, 100 to 55000' },
  'journal-socket': { option: 'journalSocket', read: pathOf, help: 'socket of the journal' },
  verbose: { option: 'verbose', read: flagOf, help: 'true or false: a line for every source' },
};

interface Flag {
  readonly option: keyof ProviderOptions;
  readonly read: (text: string, name: string) => unknown;
  readonly help: string;
}

/** What the flags and the config file say, and which arguments are left for others. */
export interface ParsedArguments {
  readonly options: ProviderOptions;
  readonly dryRun: boolean;
  readonly version: 'text' | 'json' | undefined;
  /** Of the dry run. */
  readonly output: 'text' | 'json';
}

/**
 * Reads `--name value`, `--name=value` and the config file (a flat JSON object with the same names). Arguments that are no
 * flags are passed over, as kubelet configurations give them to every provider.
 *
 * @example
 * ```ts
 * import { parseArguments } from './options.ts';
 * import assert from 'node:assert/strict';
 *
 * const read = () => '{"auth-dir":"/run/auth","budget-ms":5000}';
 * const { options } = parseArguments(['--config', '/etc/provider.json', '--auth-dir=/tmp/auth'], undefined, read);
 * assert.equal(options.authDir, '/tmp/auth');
 * assert.equal(options.budgetMs, 5000);
 * ```
 */
export function parseArguments(
  args: readonly string[],
  home: string | undefined,
  readConfig: (path: string) => string,
): ParsedArguments {
  let options = defaultOptions(home);
  if (args.length === 0) return { options, dryRun: false, version: undefined, output: 'text' };
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
    version: given.has('version-json') ? 'json' : given.has('version') ? 'text' : undefined,
    output: outputOf(given.get('output') ?? 'text'),
  };
}

const SWITCHES: readonly string[] = ['config', 'dry-run', 'output', 'version', 'version-json'];

function outputOf(text: string): 'text' | 'json' {
  if (text === 'text' || text === 'json') return text;
  throw new UsageError(`Flag "--output" is "${text}": wanted text or json`);
}

const BARE: readonly string[] = ['dry-run', 'version', 'version-json', 'verbose'];

function flagsOf(args: readonly string[]): ReadonlyMap<string, string> {
  const given = new Map<string, string>();
  for (let index = 0; index < args.length; index += 1) {
    const match = /^--?([a-z-]+)(?:=([\s\S]*))?$/.exec(args[index] ?? '');
    if (match === null) continue;
    const [, name = '', text] = match;
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

function configOf(path: string, text: string): readonly (readonly [string, string])[] {
  let settings: unknown;
  try {
    settings = JSON.parse(text);
  } catch {
    throw new UsageError(`Cannot read the config file "${path}": it is no JSON`);
  }
  if (typeof settings !== 'object' || settings === null || Array.isArray(settings))
    throw new UsageError(
      `Cannot read the config file "${path}": wanted a JSON object of flag names and values`,
    );
  return Object.entries(settings).map(([name, value]) => {
    const texts = (Array.isArray(value) ? value : [value]) as readonly unknown[];
    if (texts.every((one) => ['string', 'number', 'boolean'].includes(typeof one)))
      return [name, texts.join(',')];
    throw new UsageError(
      `Cannot read the config file "${path}": ${JSON.stringify(name)} is no text, number or list of them`,
    );
  });
}

function withSettings(
  options: ProviderOptions,
  settings: readonly (readonly [string, string])[],
): ProviderOptions {
  const changed: Record<string, unknown> = { ...options };
  for (const [name, text] of settings) {
    const flag = Object.hasOwn(FLAGS, name) ? FLAGS[name] : undefined;
    if (flag === undefined)
      throw new UsageError(`Unknown flag "--${name}": wanted one of ${Object.keys(FLAGS).join(', ')}`);
    changed[flag.option] = flag.read(text, name);
  }
  return changed as unknown as ProviderOptions;
}

function pathOf(text: string, name: string): string {
  if (text.startsWith('/')) return text;
  throw new UsageError(`Flag "--${name}" is "${text}": wanted an absolute path`);
}

function listOf(text: string, name: string): readonly string[] {
  return text === '' ? [] : text.split(',').map((path) => pathOf(path, name));
}

function modeOf(text: string): string {
  if (text === 'list' || text === 'named') return text;
  throw new UsageError(`Flag "--secrets" is "${text}": wanted list or named`);
}

function flagOf(text: string, name: string): boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  throw new UsageError(`Flag "--${name}" is "${text}": wanted true or false`);
}

function millisecondsOf(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 100 && value <= 55_000) return value;
  throw new UsageError(`Flag "--budget-ms" is "${text}": wanted a whole number from 100 to 55000`);
}
