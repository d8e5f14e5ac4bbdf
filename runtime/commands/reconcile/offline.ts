/**
 * `reconcile --from`: reads folders, runs the engine without a cluster, prints and writes the result.
 *
 * A document that cannot be parsed stops the run: it could be a Secret that a reconciler reads, and a missing Secret has another
 * meaning than an invalid one.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { writeTree } from '../../../charts/output.ts';
import type { CommandIo, ExitCode } from '../../cli/command.ts';
import { writeProblems } from '../../cli/terminal.ts';
import { PullwrightError, UsageError } from '../../core/errors.ts';
import { type KubeObject, pathPart } from '../../core/kubernetes/object.ts';
import { Redacted, reveal } from '../../core/redacted.ts';
import { counted } from '../../core/text.ts';
import type { ClusterPair, Lookup, LookupResult, Reconciler } from '../../engine/contract.ts';
import { type Folder, readFolder, readText } from '../../engine/offline/manifests.ts';
import { type OfflineResult, runOffline, withoutBookkeeping } from '../../engine/offline/offline.ts';
import { encodeObject } from '../../kube/decode.ts';
import { dataText, toYaml } from '../../kube/yaml.ts';
import { fileError } from '../../node/atomic-file.ts';
import { loadReconcilers, parseReconcileConfig, readSettings } from './reconcilers.ts';
import {
  type RunReport,
  renderRunReport,
  reportOf,
  runSummary,
  TEMPLATE_KINDS,
  templatePulls,
} from './report.ts';
import { hostedPairs, LOCAL_SCOPE, SCOPE_KINDS } from './scopes.ts';
import { type ReconcileFlags } from './settings.ts';

// `facts.yaml`: results of look-ups that an offline run cannot make.

const FACTS = z.looseObject({ 'registry-digest': z.record(z.string(), z.string()).optional() });

/**
 * Reads a facts file: `registry-digest: { "<image>": "<digest>" }`.
 *
 * @throws UsageError when the text is invalid
 */
export function parseFacts(text: string): (need: Lookup) => LookupResult | undefined {
  const { 'registry-digest': digests = {} } = readSettings('facts file', text, FACTS);
  return (need) => {
    const answer = Object.hasOwn(digests, need.image) ? digests[need.image] : undefined;
    return answer === undefined ? undefined : { ok: true, value: answer };
  };
}

export async function reconcileOffline(flags: ReconcileFlags, io: CommandIo): Promise<ExitCode> {
  if (flags['with-secrets'] && flags.to === undefined) throw new UsageError('--with-secrets requires --to');
  const config = parseReconcileConfig(flags.config === undefined ? '' : await readText(flags.config));
  const reconcilers = await loadReconcilers(config);
  const injection = config['pull-secret-injection'] ?? false;
  const kinds = reconcilers.flatMap((reconciler) => reconciler.watches.map((one) => one.kind));
  // A dump of a cluster contains many more kinds than reconcilers read.
  const wanted = new Set([...kinds, ...SCOPE_KINDS, ...(injection === false ? [] : TEMPLATE_KINDS)]);
  const pairs = await inputPairs(flags, (path) => readFolder(path, wanted, io.stdin));
  if (!readable([...new Set(pairs.flatMap((pair) => [pair.hosted, pair.management]))], io)) return 1;
  const facts = flags.facts === undefined ? undefined : parseFacts(await readText(flags.facts));
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
  if (flags.to !== undefined && !flags['dry-run']) await write(runs, flags.to, flags, reconcilers, io);
  return reports.some((report) => report.problems.some((problem) => problem.retryPolicy === 'terminal'))
    ? 1
    : 0;
}

async function inputPairs(flags: ReconcileFlags, read: (path: string) => Promise<Folder>) {
  const from = flags.from ?? '';
  if (flags.management === undefined) {
    const alone = await read(from);
    return [{ scope: LOCAL_SCOPE, hosted: alone, management: alone }];
  }
  const management = await read(flags.management);
  const pairs = hostedPairs(management.store, from, flags['hosted-cluster'], isDir);
  return Array.fromAsync(pairs, async ({ scope, hostedDir }) => ({
    scope,
    hosted: await read(hostedDir),
    management,
  }));
}

function isDir(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Prints the unreadable documents; false if there are any. */
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
  if (flags.output !== 'text') return dataText(flags.output, reports);
  const options = { verbose: flags.verbose, dryRun: flags['dry-run'] };
  const text = reports.map((report) => renderRunReport(report, options)).join('\n');
  if (reports.length === 1) return text;
  const summary = runSummary(reports, flags, programName());
  return flags.verbose ? `${text}\n${summary}` : `\n${summary}`;
}

/** The program in suggested commands: in a clone, `pullwright` is not on the PATH. */
function programName(): string {
  return process.argv[1]?.endsWith('main.ts') === true ? 'node main.ts' : 'pullwright';
}

async function digestKey(file: string): Promise<Buffer> {
  const key = Buffer.from(await readText(file));
  if (key.length >= 16) return key;
  throw new UsageError(`Cannot use "${file}" as the key of digests: expected at least 16 bytes`);
}

/**
 * Writes `<role>/<namespace or _cluster>/<kind>-<name>.yaml` for every object that exists after the run. With several clusters,
 * the files are below each cluster's name. Deletes files of an earlier run that this run does not write.
 *
 * @throws PullwrightError when real values are requested inside a git work tree, or foreign files or links are in the way
 */
async function write(
  runs: readonly { readonly scope: ClusterPair; readonly result: OfflineResult }[],
  to: string,
  flags: ReconcileFlags,
  reconcilers: readonly Reconciler[],
  io: CommandIo,
): Promise<void> {
  const { 'with-secrets': secret, 'digest-key-file': file } = flags;
  const given = file === undefined ? undefined : await digestKey(file);
  const names = reconcilers.map(({ name }) => name);
  const folderOf = (cluster: string): string => (runs.length === 1 ? '' : `${cluster}/`);
  const tree = new Map<string, string>();
  for (const { scope, result } of runs) {
    // Without a given key, a random key per cluster hides that two clusters have the same value.
    const key = given ?? randomBytes(32);
    for (const { ref, after } of result.objects) {
      if (after === undefined) continue;
      const bare = withoutBookkeeping(after, names);
      const content = secret ? encodeObject(bare) : digested(bare, key);
      tree.set(folderOf(scope.name) + fileOf(ref.role, after), toYaml(content, { lineWidth: 0 }));
    }
  }
  if (secret)
    for (const folder of new Set(['', ...[...tree.keys()].map(dirname)]))
      refuseWorkTree(join(realPath(resolve(to)), folder));
  try {
    const mark = (path: string): string => `Written by pullwright reconcile as ${path}`;
    // Keep the files of runs for other clusters.
    const within = runs.flatMap(({ scope }) =>
      ['management', 'hosted'].map((role) => folderOf(scope.name) + role),
    );
    writeTree(to, tree, { secret, mark, within });
  } catch (error) {
    throw fileError('write to', (error as NodeJS.ErrnoException).path ?? to, error);
  }
  io.stderr.write(
    `wrote ${counted(tree.size, 'file')} to ${to}${secret ? '' : ' (Secret values as keyed digests)'}\n`,
  );
  if (secret && (io.platform ?? process.platform) === 'win32')
    io.stderr.write(
      `Every account that can read "${to}" can read these Secrets: Windows has no file mode 0600, files inherit the permissions of their folder\n`,
    );
}

function fileOf(role: string, object: KubeObject): string {
  const { namespace, name } = object.metadata;
  const folder = namespace === undefined ? '_cluster' : pathPart('namespace', namespace);
  return `${role}/${folder}/${pathPart('kind', object.kind).toLowerCase()}-${pathPart('name', name)}.yaml`;
}

/** A digest is not valid base64, so it cannot be applied as a credential. */
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
          hint: 'Choose a folder outside, or remove --with-secrets',
        },
      );
    }
    if (dir === dirname(dir)) return;
  }
}

/** Like `realpath`, but the last parts of the path may not exist yet. */
function realPath(path: string): string {
  return existsSync(path) || path === dirname(path)
    ? realpathSync(path)
    : join(realPath(dirname(path)), basename(path));
}
