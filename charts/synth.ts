/** `pullwright synth`: renders a fleet into files for a GitOps repository, or reports how the files differ. */

import { existsSync, readFileSync } from 'node:fs';
import { posix, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../runtime/cli/command.ts';
import { type FileFinding, junitXml, sarifText } from '../runtime/cli/findings.ts';
import { choice, file, folder, type Given, outputFlag, toggle } from '../runtime/cli/flags.ts';
import { writeProblems } from '../runtime/cli/terminal.ts';
import { errnoOf, PullwrightError, UsageError } from '../runtime/core/errors.ts';
import { counted, shellWord } from '../runtime/core/text.ts';
import { dataText } from '../runtime/kube/yaml.ts';
import { describeProblem } from './fleet-problems.ts';
import type * as ChartsModule from './mod.ts';
import type { Fleet, ManifestTree, RenderedCluster, TreeDifference } from './mod.ts';

// Output of `synth`: a summary as text, all details as data.

interface SynthResult {
  /** Lines that list the overlays of a cluster. */
  readonly overlays: readonly string[];
  /** As named on the command line. */
  readonly fleet: string;
  readonly to: string;
  readonly clusters: readonly RenderedCluster[];
  readonly difference: TreeDifference;
  /** Missing files that the user must provide. */
  readonly missing: readonly string[];
}

type Values = Given<typeof TABLE.flags>['flags'];

/** Prints the result. Returns exit code 1 when `--check` found differences. */
function report(result: SynthResult, { output, check }: Values, io: CommandIo): ExitCode {
  const { unchanged: _, ...different } = result.difference;
  printMissing(result, io);
  if (output === 'json' || output === 'yaml') io.stdout.write(dataText(output, dataOf(result)));
  else if (output === 'sarif') io.stdout.write(sarifText(findingsOf(result)));
  else if (output === 'junit') io.stdout.write(junitOf(result));
  else io.stdout.write(`${(check ? differenceLines(result) : writtenLines(result)).join('\n')}\n`);
  return check && Object.values(different).flat().length > 0 ? 1 : 0;
}

function writtenLines(result: SynthResult): readonly string[] {
  const { added, changed, stale, unchanged } = result.difference;
  const counts = Object.entries({ added, changed, removed: stale })
    .filter(([, { length }]) => length > 0)
    .map(([word, { length }]) => `${length} ${word}, `);
  const total = added.length + changed.length + unchanged;
  return [
    `Fleet ${result.fleet} to ${result.to}`,
    ...[...clusterLines(result), ...result.overlays].map((line) => `  ${line}`),
    `${counted(total, 'file')}: ${counts.join('')}${unchanged} unchanged`,
  ];
}

function differenceLines({ fleet, to, difference }: SynthResult): readonly string[] {
  const { added, changed, stale, inTheWay, unchanged } = difference;
  const groups = { added, changed, stale, 'in the way': inTheWay };
  const lines = Object.entries(groups).flatMap(([word, paths]) => paths.map((path) => `${word} ${path}`));
  return lines.length === 0
    ? [`${to} is up to date: ${unchanged} files`]
    : [...lines, `${to} differs from fleet ${fleet}: run "pullwright synth" and commit`];
}

/** Findings on missing files are reported at the fleet. */
function findingsOf({ fleet, to, difference }: SynthResult): readonly FileFinding[] {
  const { added, changed, stale, inTheWay } = difference;
  const found = (check: string, paths: readonly string[], what: (path: string) => string) =>
    paths.map(
      (path): FileFinding => ({
        severity: 'error',
        check,
        file: check === 'ManifestMissing' ? fleet : `${to}/${path}`,
        subject: '',
        message: `${what(path)}: run "pullwright synth" and commit`,
      }),
    );
  return [
    ...found('ManifestMissing', added, (path) => `${to}/${path} is rendered from the fleet and is missing`),
    ...found('ManifestDiffers', changed, () => `The file differs from what fleet ${fleet} renders`),
    ...found('ManifestStale', stale, () => `Fleet ${fleet} no longer renders this file`),
    ...found(
      'ManifestInTheWay',
      inTheWay,
      () => 'A file that was not rendered is at the path of a rendered one',
    ),
  ];
}

function junitOf(result: SynthResult): string {
  const cases = findingsOf(result).map(({ file = '', check, message }) => ({
    classname: file,
    name: check,
    failure: message,
  }));
  const name = `${result.to}: ${result.difference.unchanged} files are as rendered`;
  return junitXml('rendered manifests', [...cases, { classname: result.fleet, name }]);
}

const SHOWN = 12;

function clusterLines(result: SynthResult): readonly string[] {
  const { clusters } = result;
  const width = Math.max(0, ...clusters.slice(0, SHOWN).map((cluster) => cluster.name.length));
  const lines = clusters.slice(0, SHOWN).map((cluster) => {
    const objects = cluster.objects.length;
    const what =
      objects === 0
        ? 'nothing in git, applied by the reconciler'
        : `${counted(objects, 'object')} in ${cluster.path}`;
    return `${cluster.name.padEnd(width)}  ${what}`;
  });
  return clusters.length > SHOWN
    ? [...lines, `and ${counted(clusters.length - SHOWN, 'more cluster')}`]
    : lines;
}

function printMissing(result: SynthResult, io: CommandIo): void {
  for (const path of result.missing) {
    const [, namespace = '', name = ''] =
      /^(?:[^/]*\/)*([^/]+)\/secret-([^/]+)\.sops\.yaml$/.exec(path) ?? [];
    io.stderr.write(
      `warning: ${path} is missing: create it with "kubectl create secret docker-registry ${shellWord(name)} -n ${shellWord(namespace)} ` +
        `--from-file=.dockerconfigjson=FILE --dry-run=client -o yaml | sops encrypt --filename-override ${shellWord(path)} /dev/stdin > ${shellWord(path)}"\n`,
    );
  }
}

/** Lists objects in overlays, whose kinds a cluster may not serve and which are applied separately. */
function overlayLines(charts: Charts, clusters: readonly RenderedCluster[]): readonly string[] {
  const objects = clusters.flatMap((cluster) => cluster.objects);
  const byFolder = Map.groupBy(objects, (object) => /^overlays\/[^/]+/.exec(charts.pathOf(object))?.[0]);
  return [...byFolder].flatMap(([path, found]) => {
    const kinds = [...new Set(found.map(({ kind }) => kind))].sort().join(', ');
    return path === undefined ? [] : [`${path}: ${kinds}; not in the base, applied separately`];
  });
}

function dataOf({ overlays: _overlays, ...result }: SynthResult): object {
  const clusters = result.clusters.map(({ objects, ...cluster }) => ({
    ...cluster,
    objects: objects.length,
  }));
  return { ...result, clusters };
}

const TABLE = {
  name: 'synth',
  about: [
    'Renders every cluster of a fleet as YAML: one object per file, a folder per namespace, kustomizations for kubectl, Argo CD and Flux. The same fleet renders the same bytes on every machine. Files that are no longer rendered are removed; files that were not rendered stay.',
  ],
  flags: {
    fleet: file({
      help: 'fleet.yaml, or a TypeScript file that exports a fleet; without it, fleet.yaml here, else the built-in fleet of one cluster',
    }),
    to: folder({
      help: 'where to write, or - to print everything; without it, $CDK8S_OUTDIR, else dist/manifests',
    }),
    format: choice(['manifests', 'helm', 'olm'], {
      default: 'manifests',
      help: 'helm: a chart of one stand-alone or management cluster; olm: a bundle for the Operator Lifecycle Manager, of one stand-alone cluster; both with --to',
    }),
    check: toggle({
      help: 'write nothing; list added, changed and stale files, and exit 1 when there are any',
    }),
    overwrite: toggle({ help: 'replace files at the path of a rendered file' }),
    schema: toggle({ help: 'print the JSON Schema of fleet.yaml for editors' }),
    output: outputFlag(
      ['text', 'json', 'yaml', 'sarif', 'junit'],
      'the form of the result; sarif and junit: what --check found, for CI systems',
    ),
  },
  exitCodes: '0 success, 1 invalid fleet, differences found by --check, or write failure, 2 usage error',
  examples: [
    'pullwright synth --fleet fleet.yaml --to manifests && git diff --exit-code manifests',
    'pullwright synth --format helm --fleet fleet.yaml --to chart',
  ],
  permissions: { reads: [], writes: ['<--to>'], hosts: ['none'], api: [] },
} as const;

export const command: Command = defineCommand(TABLE, run);

async function run({ flags: values }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const charts = await import('./mod.ts');
  if (values.schema) {
    io.stdout.write(charts.fleetSchemaText());
    return 0;
  }
  const to = values.to ?? io.env['CDK8S_OUTDIR'] ?? 'dist/manifests';
  assertUsage(values, to);
  const { fleet, name } = await loadFleet(charts, values.fleet, io.cwd);
  const warnings = fleet.warnings.map((problem) => `warning: ${describeProblem(name, problem)}`);
  writeProblems(io, warnings);
  const { tree, clusters } = rendered(charts, fleet, values.format);
  if (to === '-') return print(tree, io);
  warnOfSops(fleet, clusters, io);
  const folder = resolve(io.cwd, to);
  const difference = onDisk(to, () =>
    values.check
      ? charts.compareTree(folder, tree)
      : charts.writeTree(folder, tree, { overwrite: values.overwrite }),
  );
  const kept = clusters.flatMap((cluster) => cluster.kept.map((path) => posix.join(cluster.path, path)));
  const missing = kept.filter((path) => !existsSync(resolve(folder, path)));
  const overlays = overlayLines(charts, clusters);
  const result: SynthResult = { fleet: name, to, clusters, difference, missing, overlays };
  return report(result, values, io);
}

function rendered(charts: Charts, fleet: Fleet, format: Values['format']): ReturnType<Charts['renderFleet']> {
  if (format === 'manifests') return charts.renderFleet(fleet);
  return { tree: format === 'helm' ? charts.renderChart(fleet) : charts.renderBundle(fleet), clusters: [] };
}

/** @throws UsageError for incompatible flags */
function assertUsage(values: Values, to: string): void {
  const { output, check } = values;
  if (to === '-' && check) throw new UsageError('Cannot check "-": expected a folder');
  if (!check && (output === 'sarif' || output === 'junit'))
    throw new UsageError(`Cannot print ${output}: it reports the findings of --check, expected --check`);
  if (values.format !== 'manifests' && (values.to === undefined || to === '-'))
    throw new UsageError(
      `Cannot write a ${values.format === 'helm' ? 'chart' : 'bundle'}: expected --to with a separate folder`,
    );
}

function print(tree: ManifestTree, io: CommandIo): ExitCode {
  for (const [path, text] of tree)
    if (!path.endsWith('kustomization.yaml')) io.stdout.write(`---\n# ${path}\n${text}`);
  return 0;
}

function warnOfSops(fleet: Fleet, clusters: readonly RenderedCluster[], io: CommandIo): void {
  if (fleet.gitops?.tool !== 'argo-cd' || clusters.every((cluster) => cluster.kept.length === 0)) return;
  io.stderr.write('warning: Argo CD does not decrypt SOPS files, so no Application syncs overlays/sops\n');
}

type Charts = typeof ChartsModule;

/** Loads the fleet of the flag, `fleet.yaml` in the folder, or the built-in one. @throws PullwrightError, FleetError */
export async function loadFleet(
  charts: Charts,
  flag: string | undefined,
  cwd: string,
): Promise<{ fleet: Fleet; name: string }> {
  const name = flag ?? (existsSync(resolve(cwd, 'fleet.yaml')) ? 'fleet.yaml' : undefined);
  if (name === undefined)
    return { fleet: charts.readFleet(charts.defaultFleet, 'default'), name: 'built-in' };
  const file = resolve(cwd, name);
  if (/\.[mc]?[jt]s$/.test(file))
    return { fleet: charts.readFleet(await importFleet(name, file), name), name };
  return { fleet: charts.parseFleet(readFleetFile(name, file), name), name };
}

function readFleetFile(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw cannotRead(name, reasonOf(error), error);
  }
}

async function importFleet(name: string, file: string): Promise<unknown> {
  if (!existsSync(file)) throw cannotRead(name, 'file not found');
  let module: { readonly default?: unknown };
  try {
    module = (await import(pathToFileURL(file).href)) as { readonly default?: unknown };
  } catch (error) {
    throw cannotRead(name, error instanceof Error ? error.message : 'it failed to load', error);
  }
  if (module.default === undefined) throw cannotRead(name, 'it has no default export, expected a fleet');
  return module.default;
}

function cannotRead(name: string, reason: string, cause?: unknown): PullwrightError {
  return new PullwrightError(`Cannot read fleet "${name}": ${reason}`, {
    code: 'FleetUnreadable',
    retryPolicy: 'terminal',
    cause,
  });
}

/** Converts file system errors to a PullwrightError. */
function onDisk<T>(to: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof PullwrightError) throw error;
    throw new PullwrightError(`Cannot write to "${to}": ${reasonOf(error)}`, {
      code: 'OutputUnwritable',
      cause: error,
    });
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'file not found',
  EISDIR: 'it is a folder, expected a file',
  ENOTDIR: 'a file exists where a folder is expected',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space left on device',
};

function reasonOf(error: unknown): string {
  return REASONS[errnoOf(error) ?? ''] ?? (error instanceof Error ? error.message : 'unknown failure');
}
