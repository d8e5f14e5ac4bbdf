/** Keeps the last good plan, and writes the files that the drop-in names before the drop-in. */
import { createHash } from 'node:crypto';
import { accessSync, chmodSync, constants, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describeError, errnoOf, PullwrightError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { redact } from '../../core/redacted.ts';
import { VERSION } from '../../core/version.ts';
import type { KubeClient } from '../../kube/client.ts';
import { parseYaml } from '../../kube/yaml.ts';
import { fileError, namesIn, removeFile, replaceFile, sweepLeftovers } from '../../node/atomic-file.ts';
import { ABSENT } from '../../node/checkpoint.ts';
import { podClient } from '../../node/report.ts';
import { asProblem } from '../../node/restart.ts';
import { type LoadedService, type ServiceProperties, SystemdOverBus } from '../../node/systemd.ts';
import type { Observation } from '../../node/task.ts';
import { decodeCredentialProviderConfig, PLUGIN_API_VERSION } from '../config.ts';
import {
  environmentFiles,
  kubeletArguments,
  kubeletCommand,
  kubeletPointers,
  serviceSettings,
} from '../kubelet-unit.ts';
import type { NodeFile } from '../objects.ts';
import { CONFIGS, CREDENTIAL_PROVIDER } from '../platform.ts';
import type { CheckReport } from '../plugin/check.ts';
import { dropInPaths, sha256Hex } from '../plugin/conf-files.ts';
import { SECRETS_ANNOTATION } from '../plugin/secrets.ts';
import type { InstallerSettings } from './command.ts';
import {
  executablePath,
  type GoodPlan,
  type InstallPlan,
  MANAGED_MARKS,
  NEUTRAL,
  OWN_FILE,
  OWN_LEFTOVER,
  planInstall,
  planNodeUninstall,
  withKubeconfig,
} from './plan.ts';

// Record of the copied executable, so that the installer removes that file and no other.

/** The copied executable: path on the host, lower-case hexadecimal SHA-256 of its bytes, version. */
export type InstalledExecutable = Readonly<NonNullable<ReturnType<typeof readRecord>>>;

/** Reads the record `file`; undefined when missing or invalid. */
export function readRecord(file: string) {
  try {
    const value = JSON.parse(readFileSync(file, 'utf8')) as Partial<Record<string, unknown>>;
    const { path, sha256, version } = value;
    if (typeof path !== 'string' || typeof sha256 !== 'string' || typeof version !== 'string')
      return undefined;
    // Whether the folder was empty or missing before, so that it is removed with the executable.
    return { path, sha256, version, madeFolder: value['madeFolder'] === true };
  } catch {
    return undefined;
  }
}

/** The desired state, from the API server and the host. Keeps the last good plan on errors. */
export class NodeSource {
  readonly #options: InstallerSettings;
  readonly #env: Env;
  readonly #log: Logger;
  #plan: InstallPlan | PullwrightError | undefined;
  #copiedTo = '';
  #said = '';

  constructor(options: InstallerSettings, env: Env, log: Logger) {
    this.#options = options;
    this.#env = env;
    this.#log = log;
  }

  /** The last good plan; undefined before the first. */
  get plan(): InstallPlan | undefined {
    return this.#plan instanceof PullwrightError ? undefined : this.#plan;
  }

  async refresh(): Promise<void> {
    try {
      const plan = await askWanted(this.#options, this.#env);
      this.#prepare(plan);
      this.#plan = plan;
    } catch (error) {
      const problem = asProblem(error);
      this.#log.warn('Cannot determine the desired configuration', { error: describeError(problem) });
      this.#plan = this.plan ?? problem;
    }
  }

  look(present: string | undefined): Observation {
    return lookAtNode(this.#plan, present);
  }

  /** Removes temporary files of killed runs. Requires the lock, since another installer may be writing. */
  sweep(): void {
    const { root, configDir } = this.#options;
    removeConfigs(root + configDir, (name) => OWN_LEFTOVER.test(name));
    if (this.plan?.ok === true) sweepLeftovers(root + executablePath(this.plan.binDir));
  }

  /** Removes files of earlier entries, which are unused once the node is in sync. */
  removeOld(): void {
    const { plan } = this;
    if (plan?.ok !== true) return;
    try {
      // The plan may be newer than the drop-in: keep the files of both.
      const used = `${read('', dropInFile(this.#options))?.text ?? ''} ${plan.config?.path ?? ''} ${plan.environment?.path ?? ''}`;
      removeConfigs(
        this.#options.root + this.#options.configDir,
        (name) => OWN_FILE.test(name) && !used.includes(name),
      );
    } catch {
      // Unused files have a few hundred bytes; the next check retries.
    }
  }

  /** Writes the files that the drop-in names before the drop-in. */
  #prepare(plan: InstallPlan): void {
    if (!plan.ok) return;
    this.#sayVerdicts(plan);
    if (plan.config === undefined) return;
    const { root } = this.#options;
    this.#copyExecutable(executablePath(plan.binDir));
    for (const file of [plan.config, plan.environment]) {
      if (file === undefined) continue;
      const path = root + file.path;
      makeFolder(dirname(path), 0o755);
      if (read('', path)?.text !== file.text) replaceFile(path, Buffer.from(file.text), { mode: 0o644 });
    }
  }

  #copyExecutable(hostPath: string): void {
    const { root, executable } = this.#options;
    const path = root + hostPath;
    if (this.#copiedTo === path && isExecutable(path)) return;
    const sha256 = digestOf(executable);
    const file = recordFile(this.#options);
    const before = readRecord(file);
    const madeFolder = before?.path === hostPath ? before.madeFolder : namesIn(dirname(path)).length === 0;
    makeFolder(dirname(file), 0o700);
    const record: InstalledExecutable = { path: hostPath, sha256, version: VERSION, madeFolder };
    const keep = (): void => replaceFile(file, Buffer.from(`${JSON.stringify(record)}\n`), { mode: 0o600 });
    // Record a new path before the copy, so that --uninstall finds it after a kill; keep the record of an older copy until it is
    // replaced.
    if (before?.path !== hostPath) keep();
    makeFolder(dirname(path), 0o755);
    if (!isExecutable(path) || digestOf(path) !== sha256)
      replaceFile(path, bytesOf(executable), { mode: 0o755 });
    if (!isExecutable(path)) chmodSync(path, 0o755);
    keep();
    this.#copiedTo = path;
  }

  #sayVerdicts(plan: GoodPlan): void {
    const left = plan.verdicts.filter(({ verdict }) => verdict !== 'Rendered');
    const said = JSON.stringify(left);
    if (said === this.#said) return;
    this.#said = said;
    for (const { pattern, message } of left) this.#log.warn('Entry ignored', { pattern, detail: message });
  }
}

/** Observation for the engine: the desired drop-in, or why there is none. */
export function lookAtNode(plan: InstallPlan | PullwrightError | undefined, present: string | undefined) {
  const digest = present === undefined ? ABSENT : sha256Hex(present);
  if (plan === undefined || plan instanceof PullwrightError)
    return { present: digest, wanted: undefined, ...(plan === undefined ? {} : { problem: plan }) };
  if (!plan.ok) {
    const { code, message, hint } = plan;
    return { present: digest, wanted: undefined, problem: new PullwrightError(message, { code, hint }) };
  }
  const isNothing = plan.dropIn === NEUTRAL && present === undefined;
  const wanted = isNothing ? ABSENT : sha256Hex(plan.dropIn);
  return {
    present: digest,
    from: plan.config?.path ?? '',
    entries: plan.verdicts.filter(({ verdict }) => verdict === 'Rendered').length,
    wanted: {
      digest: wanted,
      source: wanted,
      removes: plan.config === undefined,
      bytes: redact(new Uint8Array(Buffer.from(plan.dropIn))),
      ownedDuring: {},
      ownedAfter: {},
    },
  };
}

/** Creates a folder and its parents. */
export function makeFolder(path: string, mode: number): void {
  try {
    mkdirSync(path, { recursive: true, mode });
  } catch (error) {
    throw fileError('make', path, error);
  }
}

/** Removes the files in `folder` whose names match `isOld`. A missing folder is not an error. */
export function removeConfigs(folder: string, isOld: (name: string) => boolean): void {
  for (const name of namesIn(folder)) if (isOld(name)) removeFile(join(folder, name));
}

/** Lower-case hexadecimal SHA-256 of a file's bytes. */
export function digestOf(path: string): string {
  return createHash('sha256').update(bytesOf(path)).digest('hex');
}

function bytesOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw fileError('read', path, error);
  }
}

/** Whether the file exists and is executable. */
function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

// The plan for a node, from the API server and the host. Writes nothing.

export type Env = Readonly<Record<string, string | undefined>>;

/** Reads everything and plans. Rejects with the error of the failed request. */
export async function askWanted(options: InstallerSettings, env: Env): Promise<InstallPlan> {
  const { root, configDir, takeOver } = options;
  const dropIn = (): string | undefined => read('', dropInFile(options))?.text;
  if (options.uninstall)
    return planNodeUninstall(dropIn(), options.binDir ?? CREDENTIAL_PROVIDER.binDir, takeOver);
  const client = await podClient(PROGRAM, env, options.serviceAccountDir);
  const { node, matchImages } = await asked(client, options.nodeName).finally(() => client.close());
  let presentDropIn: string | undefined;
  let kubelet: LoadedService | undefined;
  // The engine may write the drop-in meanwhile: the loaded unit must belong to the same text.
  do {
    presentDropIn = dropIn();
    kubelet = await loadedKubelet(options);
  } while (presentDropIn !== dropIn());
  const { words, pointers, ...unit } = readKubelet(options, kubelet, presentDropIn !== undefined);
  const isThere = (path: string): boolean => existsSync(root + path);
  return planInstall({
    node,
    matchImages,
    ...(options.secretAnnotation ? { annotationKeys: [SECRETS_ANNOTATION] } : {}),
    ...unit,
    args: withKubeconfig(options.providerArgs, kubelet?.commandLine || words, isThere),
    pointers: { ...pointers, binDir: options.binDir ?? pointers.binDir ?? CREDENTIAL_PROVIDER.binDir },
    present: pointers.config === undefined ? undefined : read(root, pointers.config)?.text,
    presentDropIn,
    marks: MANAGED_MARKS.filter(isThere),
    takeOver,
    configDir,
  });
}

/** The kubelet's service; undefined when systemd has no service of this name, or without a bus. */
async function loadedKubelet({ busSocket, unit }: InstallerSettings): Promise<LoadedService | undefined> {
  try {
    return await new SystemdOverBus({ socket: busSocket }).service(unit);
  } catch (error) {
    if (error instanceof PullwrightError && error.code === 'BusUnreachable') return undefined;
    throw error;
  }
}

/** The unit as systemd has loaded it; from its files while they are newer. */
function readKubelet(places: InstallerSettings, kubelet: LoadedService | undefined, hasDropIn: boolean) {
  // systemd before 257 does not count the first drop-in of a new folder as a change (systemd issue 31752).
  const isLoaded = kubelet?.isStale === false && kubelet.files.every(isOther) !== hasDropIn;
  const loaded = isLoaded ? kubelet : undefined;
  const unit = loaded === undefined ? readUnit(places) : readLoadedUnit(places.root, loaded);
  const environment = readEnvironment(places.root, unit, loaded);
  const settings = serviceSettings(unit.map(({ text }) => text));
  const command = loaded?.command ?? kubeletCommand(settings);
  const words = kubeletArguments(settings, environment, command).join(' ');
  return { unit, environment, words, pointers: kubeletPointers(words), loaded };
}

async function asked(client: KubeClient, name: string) {
  const node = await client.get({ apiVersion: 'v1', kind: 'Node', name });
  if (node === undefined)
    throw new PullwrightError(`Cannot find Node "${name}" in the API server`, {
      code: 'NodeMissing',
      hint: 'Set --node-name to the name of the Node object',
    });
  for (const ref of CONFIGS) {
    const object = await client.get(ref);
    const { matchImages = [] } = (object?.spec ?? {}) as { readonly matchImages?: readonly string[] };
    if (object !== undefined) return { node, matchImages };
  }
  return { node, matchImages: [] };
}

/** User agent and field manager of the installer. */
export const PROGRAM = 'pullwright-installer';

// Files of the host: the kubelet's unit with its drop-ins, and its EnvironmentFiles.

/** Path of the drop-in, including the root. */
export function dropInFile({ root, dropInDir }: InstallerSettings): string {
  return `${root}${dropInDir}/${OWN_DROP_IN}`;
}

/** Path of the record of the copied executable, including the root. */
export function recordFile({ root, stateDir }: Pick<InstallerSettings, 'root' | 'stateDir'>): string {
  return `${root}${stateDir}/installed.json`;
}

const OWN_DROP_IN = basename(CREDENTIAL_PROVIDER.dropIn);

/** Whether the file is not our own drop-in, which is skipped. */
function isOther(path: string): boolean {
  return basename(path) !== OWN_DROP_IN;
}

/** The unit file and its drop-ins in the order in which systemd applies them; empty if the node has no such unit. */
function readUnit({ root, unit, unitPath }: InstallerSettings): readonly NodeFile[] {
  const main = unitPath.map((folder) => read(root, `${folder}/${unit}`)).find((file) => file !== undefined);
  if (main === undefined) return [];
  const folders = unitPath.map((folder) => `${folder}/${unit}.d`);
  const others = dropInPaths(folders, (folder) => namesIn(root + folder)).filter(isOther);
  return [main, ...others.flatMap((path) => read(root, path) ?? [])];
}

/** The files of the loaded unit without our drop-in. Throws for a file that the pod does not mount. */
function readLoadedUnit(root: string, loaded: LoadedService): readonly NodeFile[] {
  return loaded.files.filter(isOther).map((path) => {
    // Where /lib is a link to /usr/lib, systemd may report either path.
    const file = read(root, path) ?? (path.startsWith('/lib/') ? read(root, `/usr${path}`) : undefined);
    if (file !== undefined) return { path, text: file.text };
    throw new PullwrightError(`Cannot read "${root}${path}": systemd loads it for the kubelet's unit`, {
      code: 'UnitNotReadable',
      hint: 'Move it to /etc/systemd/system or /usr/lib/systemd/system, which the installer can read',
    });
  });
}

/** Texts of the unit's EnvironmentFiles, without ours. */
export function readEnvironment(root: string, unit: readonly NodeFile[], loaded: LoadedService | undefined) {
  const named =
    loaded?.environmentFiles.map(({ path }) => path) ??
    environmentFiles(serviceSettings(unit.map(({ text }) => text)));
  return named
    .filter((path) => !OWN_FILE.test(basename(path)))
    .flatMap((path) => read(root, path)?.text ?? []);
}

/** A file of the host; follows links; undefined when missing. */
export function read(root: string, path: string): NodeFile | undefined {
  try {
    return { path, text: readFileSync(root + path, 'utf8') };
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
    throw fileError('read', root + path, error);
  }
}

// Verifies the installation: the kubelet runs with the flags, and the executable, started by systemd on the host with the
// kubelet's arguments and variables, reaches the API server.

/** More than the longest budget of a check, less than the deadline of the loop's heartbeat. */
const LONGEST_SECONDS = 60;
const UNIT = 'pullwright-provider-check.service';

/** Verifies the installation: why it does not work, undefined when it does. Errors of systemd are a failure too. */
export async function tryOut(...given: Parameters<typeof attempt>) {
  try {
    return await attempt(...given);
  } catch (error) {
    return { reason: 'ProviderNotTried', message: describeError(error) };
  }
}

async function attempt(
  systemd: SystemdOverBus,
  places: InstallerSettings,
  plan: GoodPlan,
  signal: AbortSignal,
) {
  const kubelet = await systemd.service(places.unit);
  const failure = flagsFailure(kubelet, plan, places.unit);
  if (failure !== undefined) return failure;
  const answer = `${places.stateDir}/check.json`;
  mkdirSync(places.root + places.stateDir, { recursive: true, mode: 0o700 });
  try {
    // systemd does not truncate an existing file.
    removeFile(places.root + answer);
    const result = await systemd.run(UNIT, trialService(plan, answer, kubelet), signal);
    return judged(places.root + answer, result);
  } finally {
    removeFile(places.root + answer);
  }
}

/** Flags that the command line of the running kubelet lacks. */
function flagsFailure(kubelet: LoadedService | undefined, { config, binDir }: GoodPlan, unit: string) {
  const line = kubelet?.commandLine ?? '';
  const { config: file, binDir: folder } = kubeletPointers(line);
  if (file === config?.path && folder === binDir) return undefined;
  const there =
    line === ''
      ? 'it does not run'
      : `--image-credential-provider-config is ${file ?? 'missing'}, --image-credential-provider-bin-dir is ${folder ?? 'missing'}`;
  return {
    reason: 'KubeletWithoutFlags',
    message: `The main process of ${unit} lacks the drop-in's flags: ${there}. Run "systemctl status ${unit}": the kubelet's start command must pass them`,
  };
}

/** Request as for a static pod: without a token, so that it cannot read a Secret. */
function requestFor(image: string): string {
  return `${JSON.stringify({ apiVersion: PLUGIN_API_VERSION, kind: 'CredentialProviderRequest', image })}\n`;
}

/** Runs the executable as the kubelet does: on the host, with the variables of the kubelet's unit. */
export function trialService(
  plan: GoodPlan,
  answer: string,
  kubelet: LoadedService | undefined,
): ServiceProperties {
  const program = executablePath(plan.binDir);
  const command = [program, [program, ...argsIn(plan.config?.text ?? ''), '--check', '--output=json'], false];
  const image = plan.verdicts.find(({ verdict }) => verdict === 'Rendered')?.pattern ?? 'localhost/check';
  return [
    ['Description', 's', `Check of ${CREDENTIAL_PROVIDER.name}`],
    ['ExecStart', 'a(sasb)', [command]],
    ['StandardInput', 's', 'data'],
    ['StandardInputData', 'ay', Buffer.from(requestFor(image.replaceAll('*', 'check')))],
    ['StandardOutputFile', 's', answer],
    ['StandardError', 's', 'null'],
    ['Environment', 'as', kubelet?.environment ?? []],
    [
      'EnvironmentFiles',
      'a(sb)',
      (kubelet?.environmentFiles ?? []).map(({ path, optional }) => [path, optional]),
    ],
    ['TimeoutStartUSec', 't', BigInt(LONGEST_SECONDS * 1_000_000)],
    ['TimeoutStopUSec', 't', 5_000_000n],
  ];
}

/** Arguments of the executable in the kubelet's file. */
function argsIn(text: string): readonly string[] {
  const decoded = decodeCredentialProviderConfig(text, parseYaml);
  const providers = decoded.ok ? (decoded.config.providers ?? []) : [];
  return providers.find(({ name }) => name === CREDENTIAL_PROVIDER.name)?.args ?? [];
}

function judged(file: string, result: string) {
  try {
    const { ok, message } = JSON.parse(readFileSync(file, 'utf8')) as CheckReport;
    return ok
      ? undefined
      : { reason: 'ProviderFails', message: `The executable was run on the node: ${message}` };
  } catch {
    return {
      reason: 'ProviderNotTried',
      message: `The executable returned no result on the node (systemd: ${result}): it cannot start, or is not Pullwright. Run it with --version on the node`,
    };
  }
}
