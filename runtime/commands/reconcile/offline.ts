/**
 * `reconcile --from`: reads folders, runs the engine without a cluster, prints and writes the result.
 *
 * One document that cannot be parsed stops the run: it could be the very Secret that a reconciler looks for, and an absent
 * Secret means something else than a broken one.
 */

import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { CommandIo, ExitCode } from '../../cli/command.ts';
import { writeProblems } from '../../cli/terminal.ts';
import { errnoOf, PullwrightError, UsageError } from '../../core/errors.ts';
import { type KubeObject, pathPart } from '../../core/kubernetes/object.ts';
import { Redacted, redact, reveal } from '../../core/redacted.ts';
import { counted } from '../../core/text.ts';
import type { ClusterPair, Lookup, LookupResult, Reconciler } from '../../engine/contract.ts';
import { type Folder, readFolder } from '../../engine/offline/manifests.ts';
import {
  type ObjectResult,
  type OfflineResult,
  runOffline,
  withoutBookkeeping,
} from '../../engine/offline/offline.ts';
import { encodeObject } from '../../kube/decode.ts';
import { parseYaml as parse, toYaml } from '../../kube/yaml.ts';
import { fileError, readWhole, replaceFile } from '../../node/atomic-file.ts';
import { loadReconcilers, parseReconcileConfig } from './reconcilers.ts';
import {
  type RunReport,
  renderRunReport,
  reportOf,
  reportsJson,
  runSummary,
  TEMPLATE_KINDS,
  templatePulls,
} from './report.ts';
import { hostedPairs, LOCAL_SCOPE, SCOPE_KINDS } from './scopes.ts';
import type { ReconcileFlags } from './settings.ts';

// `facts.yaml`: answers to look-ups that an offline run cannot make.

/**
 * Reads a facts file: `registry-digest: { "<image>": "<digest>" }`.
 *
 * @throws UsageError when the text has another shape
 */
export function parseFacts(text: string): (need: Lookup) => LookupResult | undefined {
  let value: unknown;
  try {
    value = parse(text);
  } catch {
    throw new UsageError('Cannot read the facts file: it is not valid YAML');
  }
  const table = (value as Readonly<Record<string, unknown>> | null)?.['registry-digest'] ?? {};
  if (typeof table !== 'object')
    throw new UsageError('Cannot read the facts file: "registry-digest" is no map from image to digest');
  const digests = table as Readonly<Record<string, unknown>>;
  return (need) => {
    const answer = Object.hasOwn(digests, need.image) ? digests[need.image] : undefined;
    return typeof answer === 'string' ? { ok: true, value: answer } : undefined;
  };
}

// Files that a command writes below a folder which a person named. The folder may be shared, or a checkout: what others put
// there, links above all, does not lead a write elsewhere and does not choose who reads it.

/**
 * The folder itself may be reached by links: its person chose it. Below it none is followed.
 */
export class OutputFolder {
  /** Where it really is. */
  readonly path: string;
  readonly #root: string;
  readonly #below: readonly string[];

  /** @param below a folder in it, where all is written; unlike `root`, no link is followed to it */
  constructor(root: string, below = '') {
    this.#root = realPath(resolve(root));
    this.#below = below === '' ? [] : below.split('/').map((part) => pathPart('folder', part));
    this.path = join(this.#root, ...this.#below);
  }

  /**
   * The path of a file in the folder.
   *
   * @param file relative, with `/`, of names that cannot lead elsewhere
   * @throws PullwrightError `IsSymlink` when a link stands above the file
   */
  place(file: string): string {
    return this.#path(file, () => undefined);
  }

  /**
   * Puts a file there, with the folders above it.
   *
   * @param options `secret`: only who runs the program may read it, whatever stood there. Others keep the mode that they have.
   */
  write(file: string, text: string, options: { readonly secret?: boolean } = {}): void {
    makeFolder(this.#root, true);
    const path = this.#path(file, makeFolder);
    const old = lstatSync(path, { throwIfNoEntry: false });
    const open = old === undefined ? 0o644 & ~process.umask() : old.mode & 0o777;
    replaceFile(path, new TextEncoder().encode(text), {
      mode: options.secret === true ? 0o600 : open,
      fresh: true,
      // What was not written in the end is written by the next run; and Node's permission model refuses to sync.
      durable: false,
    });
  }

  /** Removes a file; one that is not there is fine. */
  remove(file: string): void {
    rmSync(this.place(file), { force: true });
  }

  #path(file: string, absent: (folder: string) => void): string {
    const parts = [...this.#below, ...file.split('/')];
    const name = parts.pop() ?? '';
    let folder = this.#root;
    for (const part of parts) {
      folder = `${folder}/${part}`;
      if (!isFolder(folder)) absent(folder);
    }
    return `${folder}/${name}`;
  }
}

function isFolder(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined || stat.isDirectory()) return stat !== undefined;
  const what = stat.isSymbolicLink() ? 'a symbolic link' : 'no folder';
  throw new PullwrightError(`Cannot write below "${path}": it is ${what}, expected a folder`, {
    code: stat.isSymbolicLink() ? 'IsSymlink' : 'NotAFolder',
    retryPolicy: 'terminal',
    hint: 'Remove it, or choose another folder: a link here would let its owner choose where files are written',
  });
}

function makeFolder(path: string, recursive = false): void {
  try {
    mkdirSync(path, { recursive });
  } catch (error) {
    throw fileError('make', path, error);
  }
}

/** Also of a path whose end is not there yet. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    const above = dirname(path);
    const isMissing = errnoOf(error) === 'ENOENT' && lstatSync(path, { throwIfNoEntry: false }) === undefined;
    if (isMissing && above !== path) return join(realPath(above), basename(path));
    throw fileError('find', path, error);
  }
}

// Writes the objects that an offline run made to a folder: one file each, Secret values as keyed digests unless asked otherwise.

/** Names the files that an earlier run wrote, so that stale ones go and foreign ones stay. */
const INDEX = '.pullwright-reconcile';

export interface WriteOptions {
  readonly to: string;
  /** Of several clusters each has a folder below `to`, of this name. */
  readonly cluster?: string;
  readonly withSecrets: boolean;
  /** Key of the digests; a new one when absent. */
  readonly digestKey?: Redacted<string>;
  readonly reconcilers: readonly string[];
}

/**
 * Writes `<to>/<role>/<namespace or _cluster>/<kind>-<name>.yaml` for every object that is there after the run.
 *
 * @returns the files written, relative to `to`
 * @throws PullwrightError when real values were asked for inside a git work tree, a link stands below `to`, or the folder cannot be
 *   written
 */
export function writeObjects(results: readonly ObjectResult[], options: WriteOptions): readonly string[] {
  const to = new OutputFolder(options.to, options.cluster);
  const key = options.digestKey === undefined ? randomBytes(32) : Buffer.from(reveal(options.digestKey));
  const files = new Map<string, string>();
  for (const { ref, after } of results) {
    if (after === undefined) continue;
    const bare = withoutBookkeeping(after, options.reconcilers);
    const content = options.withSecrets ? encodeObject(bare) : digested(bare, key);
    files.set(fileOf(ref.role, after), toYaml(content, { lineWidth: 0 }));
  }
  const written = [...files.keys()].sort();
  if (options.withSecrets)
    for (const folder of new Set(['', ...written.map((file) => dirname(file))]))
      refuseWorkTree(join(to.path, folder));
  removeStale(to, files);
  for (const [file, text] of files) to.write(file, text, { secret: options.withSecrets });
  to.write(INDEX, `${written.join('\n')}\n`);
  return written;
}

function fileOf(role: string, object: KubeObject): string {
  const { namespace, name } = object.metadata;
  const folder = namespace === undefined ? '_cluster' : pathPart('namespace', namespace);
  return `${role}/${folder}/${pathPart('kind', object.kind).toLowerCase()}-${pathPart('name', name)}.yaml`;
}

/** A digest is no base64, so that nobody can apply it as a credential. */
function digested(value: unknown, key: Uint8Array): unknown {
  if (value instanceof Redacted) {
    const digest = createHmac('sha256', key)
      .update(reveal(value as Redacted<string>))
      .digest('hex');
    return `hmac-sha256:${digest.slice(0, 32)}`;
  }
  if (Array.isArray(value)) return value.map((element) => digested(element, key));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, digested(child, key)]));
}

function refuseWorkTree(to: string): void {
  for (let dir = to; ; dir = dirname(dir)) {
    if (existsSync(join(dir, '.git'))) {
      throw new PullwrightError(
        `Cannot write Secret values to "${to}": it is inside the git work tree "${dir}"`,
        {
          code: 'InsideWorkTree',
          retryPolicy: 'terminal',
          hint: 'Choose a folder outside, or leave --with-secrets out',
        },
      );
    }
    if (dir === dirname(dir)) return;
  }
}

function removeStale(to: OutputFolder, files: ReadonlyMap<string, string>): void {
  const index = readWhole(to.place(INDEX));
  if (index === undefined) {
    const present = existsSync(to.path) ? readdirSync(to.path) : [];
    const clash = present.filter((name) => name === 'hosted' || name === 'management');
    if (clash.length === 0) return;
    throw new PullwrightError(
      `Cannot write to "${to.path}": it holds "${clash.join('", "')}", which no earlier run wrote`,
      {
        code: 'FolderNotOurs',
        retryPolicy: 'terminal',
        hint: 'Choose an empty folder',
      },
    );
  }
  const earlier = new TextDecoder().decode(reveal(index.bytes)).split('\n');
  // Whoever may write here may have written the index too: what no run of ours would have written is not removed by its word.
  const ours = earlier.filter((file) => /^(?:hosted|management)\/\w[\w.-]*\/\w[\w.-]*\.yaml$/.test(file));
  for (const file of ours) if (!files.has(file)) to.remove(file);
}

export async function reconcileOffline(flags: ReconcileFlags, io: CommandIo): Promise<ExitCode> {
  if (flags['with-secrets'] && flags.to === undefined) throw new UsageError('--with-secrets goes with --to');
  const config = parseReconcileConfig(flags.config === undefined ? '' : await text(flags.config));
  const reconcilers = await loadReconcilers(config);
  const injection = config['pull-secret-injection'] ?? false;
  const kinds = reconcilers.flatMap((reconciler) => reconciler.watches.map((one) => one.kind));
  const read = inputReader([...kinds, ...SCOPE_KINDS, ...(injection === false ? [] : TEMPLATE_KINDS)], io);
  const pairs = await inputPairs(flags, read);
  if (!readable([...new Set(pairs.flatMap((pair) => [pair.hosted, pair.management]))], io)) return 1;
  const facts = flags.facts === undefined ? undefined : parseFacts(await text(flags.facts));
  const runs = pairs.map(({ scope, hosted, management }) => ({
    scope,
    hosted: hosted.store,
    result: runOffline({
      reconcilers,
      scope,
      stores: { hosted: hosted.store, management: management.store },
      now: new Date(),
      ...(facts === undefined ? {} : { facts }),
    }),
  }));
  const reports = runs.map(({ scope, result, hosted }) =>
    reportOf(
      scope.name,
      result,
      injection === false ? [] : templatePulls(hosted, injection['admission'] === 'none'),
    ),
  );
  io.stdout.write(rendered(reports, flags));
  if (flags.to !== undefined && !flags['dry-run']) await write(runs, flags, reconcilers, io);
  return reports.some((report) => report.problems.some((problem) => problem.retryPolicy === 'terminal'))
    ? 1
    : 0;
}

interface InputPair {
  readonly scope: ClusterPair;
  readonly hosted: Folder;
  readonly management: Folder;
}

async function inputPairs(
  flags: ReconcileFlags,
  read: (path: string) => Promise<Folder>,
): Promise<readonly InputPair[]> {
  const from = flags.from ?? '';
  if (flags.management === undefined) {
    const alone = await read(from);
    return [{ scope: LOCAL_SCOPE, hosted: alone, management: alone }];
  }
  const management = await read(flags.management);
  const pairs: InputPair[] = [];
  for (const { scope, hostedDir } of hostedPairs(management.store, from, flags['hosted-cluster'], isDir)) {
    pairs.push({ scope, hosted: await read(hostedDir), management });
  }
  return pairs;
}

function isDir(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Parses only what somebody reads: a dump of a cluster holds far more. */
function inputReader(kinds: readonly string[], io: CommandIo): (path: string) => Promise<Folder> {
  const wanted = new Set(kinds);
  return (path) => readFolder(path, wanted, io.stdin);
}

/** A document that cannot be read could be the very secret that is looked for, so nothing is judged without it. */
function readable(folders: readonly Folder[], io: CommandIo): boolean {
  const problems = folders.flatMap((folder) => folder.problems);
  writeProblems(
    io,
    problems.map(({ file, line, message }) => `${file}:${line}: ${message}`),
  );
  if (problems.length > 0)
    io.stderr.write(`Cannot reconcile: ${counted(problems.length, 'document')} cannot be read\n`);
  return problems.length === 0;
}

function rendered(reports: readonly RunReport[], flags: ReconcileFlags): string {
  if (flags.output === 'json') return reportsJson(reports);
  if (flags.output === 'yaml') return toYaml(JSON.parse(reportsJson(reports)), { lineWidth: 0 });
  const options = { verbose: flags.verbose, dryRun: flags['dry-run'] };
  const text = reports.map((report) => renderRunReport(report, options)).join('\n');
  return reports.length === 1 ? text : `${text}\n${runSummary({ reports, flags, program: programName() })}`;
}

/** What to call for the next look: in a clone there is no `pullwright` on the path. */
function programName(): string {
  return process.argv[1]?.endsWith('main.ts') === true ? 'node main.ts' : 'pullwright';
}

interface Run {
  readonly scope: ClusterPair;
  readonly result: OfflineResult;
}

async function write(
  runs: readonly Run[],
  flags: ReconcileFlags,
  reconcilers: readonly Reconciler[],
  io: CommandIo,
): Promise<void> {
  const key = flags['digest-key-file'];
  for (const { scope, result } of runs) {
    const root = flags.to ?? '';
    const to = runs.length === 1 ? root : `${root}/${scope.name}`;
    const files = writeObjects(result.objects, {
      to: root,
      ...(runs.length === 1 ? {} : { cluster: scope.name }),
      withSecrets: flags['with-secrets'],
      reconcilers: reconcilers.map((reconciler) => reconciler.name),
      ...(key === undefined ? {} : { digestKey: redact(await text(key)) }),
    });
    io.stderr.write(
      `wrote ${counted(files.length, 'file')} to ${to}${flags['with-secrets'] ? '' : ' (Secret values as keyed digests)'}\n`,
    );
    if (flags['with-secrets'] && (io.platform ?? process.platform) === 'win32')
      io.stderr.write(
        `Whoever may read "${to}" may read these Secrets: Windows knows no file mode 0600, files have the rights of their folder\n`,
      );
  }
}

async function text(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    const code = errnoOf(error) ?? 'unknown';
    throw new PullwrightError(`Cannot read "${file}": the system answered ${code}`, {
      code: 'InputUnreadable',
      retryPolicy: 'terminal',
      cause: error,
    });
  });
}
