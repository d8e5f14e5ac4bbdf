/** A node in a folder: the files that the provider reads, and a run of the provider over them in this process. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { collectingLog } from '../../../runtime/credential-provider/plugin/journal.ts';
import { nodeView, provide } from '../../../runtime/credential-provider/plugin/run.ts';
import { type ProviderOptions, parseArguments } from '../../../runtime/credential-provider/provider-flags.ts';

export interface NodeFiles {
  /** Absent: the file is missing. */
  readonly registriesConf?: string | undefined;
  readonly dropins?: Readonly<Record<string, string>>;
  /** Text of the node's own auth file. */
  readonly globalAuth?: string;
  readonly apiServerEnv?: string;
  readonly ca?: string;
  /** Permission bits; absent: the folder is missing. */
  readonly authDirMode?: number;
  readonly existing?: Readonly<Record<string, string>>;
}

export interface NodeDouble {
  readonly folder: string;
  readonly options: ProviderOptions;
  remove(): void;
}

/** Budget for tests that are not about the budget: a busy machine needs more than the default. */
export const PATIENT_MS = 30_000;

export function makeNode(files: NodeFiles): NodeDouble {
  const folder = mkdtempSync(join(tmpdir(), 'provider-node-'));
  const put = (name: string, text: string | undefined): void => {
    if (text !== undefined) writeFileSync(join(folder, name), text, { mode: 0o600 });
  };
  put('registries.conf', files.registriesConf);
  put('config.json', files.globalAuth);
  put('apiserver-url.env', files.apiServerEnv);
  put('ca.crt', files.ca);
  mkdirSync(join(folder, 'registries.conf.d'));
  for (const [name, text] of Object.entries(files.dropins ?? {})) put(`registries.conf.d/${name}`, text);
  if (files.authDirMode !== undefined) mkdirSync(join(folder, 'auth'), { mode: files.authDirMode });
  for (const [name, text] of Object.entries(files.existing ?? {})) put(`auth/${name}`, text);
  const { options } = parseArguments([], undefined, () => '');
  return {
    folder,
    options: {
      ...options,
      budgetMs: PATIENT_MS,
      registriesConf: join(folder, 'registries.conf'),
      registriesConfDirs: [join(folder, 'registries.conf.d')],
      authDir: join(folder, 'auth'),
      globalAuthFile: join(folder, 'config.json'),
      apiServerEnv: join(folder, 'apiserver-url.env'),
      kubeconfigs: [],
      caFiles: [join(folder, 'ca.crt')],
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The same options as flags, for a run as a process. */
export function flagsOf({ folder }: NodeDouble): readonly string[] {
  return [
    `--registries-conf=${folder}/registries.conf`,
    `--registries-conf-dir=${folder}/registries.conf.d`,
    `--auth-dir=${folder}/auth`,
    `--global-auth-file=${folder}/config.json`,
    `--apiserver-env=${folder}/apiserver-url.env`,
    `--ca-file=${folder}/ca.crt`,
    `--budget-ms=${PATIENT_MS}`,
  ];
}

export interface RunResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly log: readonly string[];
}

export async function runOn(
  node: NodeDouble,
  stdin: string,
  extra: { readonly override?: string; readonly options?: Partial<ProviderOptions> } = {},
): Promise<RunResult> {
  const options = { ...node.options, ...extra.options };
  const log = collectingLog(options.verbose, () => undefined);
  const signal = AbortSignal.timeout(options.budgetMs);
  const view = nodeView(
    options,
    { env: { CONTAINERS_REGISTRIES_CONF_OVERRIDE: extra.override }, signal },
    log,
  );
  const result = await provide({ ...view, stdin: () => Promise.resolve(stdin) }, options, log);
  return { ...result, log: log.lines.map(({ text }) => text) };
}

export interface AuthFile {
  readonly mode: number;
  readonly text: string;
}

/** Every file in the auth folder, by name; notes of failed runs lie in a folder of their own. */
export function authFiles(node: NodeDouble): Readonly<Record<string, AuthFile>> {
  const { authDir } = node.options;
  const entries =
    statSync(authDir, { throwIfNoEntry: false }) === undefined
      ? []
      : readdirSync(authDir, { withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    entries.map(({ name }) => {
      const path = join(authDir, name);
      return [name, { mode: statSync(path).mode & 0o777, text: readFileSync(path, 'utf8') }];
    }),
  );
}

/** A token like the kubelet's. */
export function tokenFor(namespace: string, pod = 'web-0', serviceAccount = 'app'): string {
  const claims = {
    'kubernetes.io': { namespace, pod: { name: pod }, serviceaccount: { name: serviceAccount } },
  };
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'RS256' })}.${part(claims)}.c2ln`;
}

export function requestFor(
  image: string,
  token: string | undefined,
  annotations?: Record<string, string>,
): string {
  const request = {
    kind: 'CredentialProviderRequest',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    image,
    serviceAccountToken: token,
    serviceAccountAnnotations: annotations,
  };
  return `${JSON.stringify(request)}\n`;
}

export interface PullSecretObject {
  readonly metadata: { readonly name: string };
  readonly type: string;
  readonly data: Readonly<Record<string, string>>;
}

/** A pull secret of the usual type. */
export function pullSecret(
  name: string,
  auths: unknown,
  type = 'kubernetes.io/dockerconfigjson',
): PullSecretObject {
  const isOld = type === 'kubernetes.io/dockercfg';
  const body = Buffer.from(JSON.stringify(isOld ? auths : { auths })).toString('base64');
  return { metadata: { name }, type, data: { [isOld ? '.dockercfg' : '.dockerconfigjson']: body } };
}
