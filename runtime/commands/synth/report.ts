/** What `synth` prints: short for people, whole for programs. */

import type { RenderedCluster, TreeDifference } from '../../../charts/mod.ts';
import { counted } from '../../rules/text/counted.ts';
import type { FileFinding } from '../../rules/text/findings.ts';
import { jsonText } from '../../rules/text/json-text.ts';
import { junitXml } from '../../rules/text/junit.ts';
import { type SarifLog, sarifLog } from '../../rules/text/sarif.ts';
import type { CommandIo, ExitCode } from '../command.ts';

export interface SynthResult {
  /** As it was named. */
  readonly fleet: string;
  readonly to: string;
  readonly clusters: readonly RenderedCluster[];
  readonly difference: TreeDifference;
  /** Files that a person has to provide and that are not there. */
  readonly missing: readonly string[];
}

/** What is printed as JSON. */
export interface SynthOutput extends Omit<SynthResult, 'clusters'> {
  readonly clusters: readonly (Omit<RenderedCluster, 'objects'> & { readonly objects: number })[];
}

/** After writing. */
export function printReport(result: SynthResult, format: string, io: CommandIo): void {
  printMissing(result, io);
  if (format === 'json') return printJson(result, io);
  const { added, changed, stale, unchanged } = result.difference;
  io.stdout.write(`Fleet ${result.fleet} to ${result.to}\n`);
  for (const line of clusterLines(result)) io.stdout.write(`  ${line}\n`);
  const counts = [
    count(added, 'added'),
    count(changed, 'changed'),
    count(stale, 'removed'),
    `${unchanged} unchanged`,
  ];
  const total = added.length + changed.length + unchanged;
  io.stdout.write(`${counted(total, 'file')}: ${counts.filter((text) => text !== '').join(', ')}\n`);
}

/** After comparing: exit code 1 when anything differs. */
export function reportCheck(result: SynthResult, format: string, io: CommandIo): ExitCode {
  const { added, changed, stale, inTheWay, unchanged } = result.difference;
  const differs = added.length + changed.length + stale.length + inTheWay.length > 0;
  printMissing(result, io);
  const ends = differs ? 1 : 0;
  if (format === 'json') {
    printJson(result, io);
    return ends;
  }
  if (format === 'sarif' || format === 'junit') {
    io.stdout.write(format === 'sarif' ? sarifOf(result) : junitOf(result));
    return ends;
  }
  const groups = { added, changed, stale, 'in the way': inTheWay };
  for (const [word, paths] of Object.entries(groups))
    for (const path of paths) io.stdout.write(`${word} ${path}\n`);
  if (differs)
    io.stdout.write(`${result.to} differs from fleet ${result.fleet}: run "pullwright synth" and commit\n`);
  else io.stdout.write(`${result.to} is up to date: ${unchanged} files\n`);
  return ends;
}

/** A file that is not there cannot be pointed at: the fleet stands for it. */
function findingsOf({ fleet, to, difference }: SynthResult): readonly FileFinding[] {
  const { added, changed, stale, inTheWay } = difference;
  const found = (
    code: string,
    paths: readonly string[],
    what: (path: string) => string,
  ): readonly FileFinding[] =>
    paths.map((path) => {
      const file = code === 'ManifestMissing' ? fleet : `${to}/${path}`;
      return {
        severity: 'error',
        code,
        file,
        subject: '',
        message: `${what(path)}: run "pullwright synth" and commit`,
      };
    });
  return [
    ...found('ManifestMissing', added, (path) => `${to}/${path} is rendered from the fleet and is not there`),
    ...found('ManifestDiffers', changed, () => `The file is not what fleet ${fleet} renders`),
    ...found('ManifestStale', stale, () => `Fleet ${fleet} does not render this file any more`),
    ...found(
      'ManifestInTheWay',
      inTheWay,
      () => 'A file that was not rendered stands where a rendered one belongs',
    ),
  ];
}

function sarifOf(result: SynthResult): string {
  return jsonText<SarifLog>(sarifLog(findingsOf(result)));
}

function junitOf(result: SynthResult): string {
  const cases = findingsOf(result).map(({ file, code, message }) => ({
    classname: file,
    name: code,
    failure: message,
  }));
  const well = {
    classname: result.fleet,
    name: `${result.to}: ${result.difference.unchanged} files are as rendered`,
  };
  return junitXml('rendered manifests', [...cases, well]);
}

const SHOWN = 12;

function clusterLines(result: SynthResult): readonly string[] {
  const { clusters } = result;
  const width = Math.max(0, ...clusters.slice(0, SHOWN).map((cluster) => cluster.name.length));
  const lines = clusters.slice(0, SHOWN).map((cluster) => {
    const objects = cluster.objects.length;
    const what =
      objects === 0
        ? 'nothing in git, the reconciler applies it'
        : `${counted(objects, 'object')} in ${cluster.path}`;
    return `${cluster.name.padEnd(width)}  ${what}`;
  });
  return clusters.length > SHOWN
    ? [...lines, `and ${counted(clusters.length - SHOWN, 'more cluster')}`]
    : lines;
}

function count(paths: readonly string[], word: string): string {
  return paths.length === 0 ? '' : `${paths.length} ${word}`;
}

function printMissing(result: SynthResult, io: CommandIo): void {
  for (const path of result.missing) {
    const [, namespace = '', name = ''] =
      /^(?:[^/]*\/)*([^/]+)\/secret-([^/]+)\.sops\.yaml$/.exec(path) ?? [];
    io.stderr.write(
      `warning: ${path} is not there yet: make it with "kubectl create secret docker-registry ${name} -n ${namespace} ` +
        `--from-file=.dockerconfigjson=FILE --dry-run=client -o yaml | sops encrypt --filename-override ${path} /dev/stdin > ${path}"\n`,
    );
  }
}

function printJson(result: SynthResult, io: CommandIo): void {
  const clusters = result.clusters.map(({ name, path, objects, kept }) => ({
    name,
    path,
    objects: objects.length,
    kept,
  }));
  io.stdout.write(jsonText<SynthOutput>({ ...result, clusters }));
}
