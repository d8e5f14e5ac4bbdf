/** `pullwright mirrors IMAGE`: where an image is really pulled from, in which order, and why. */
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { parse as parseToml } from 'smol-toml';
import { readFolder } from '../controller/folder.ts';
import { toYaml } from '../kube/yaml.ts';
import { type ProbeResult, probeAll } from '../registry/probe.ts';
import {
  MIRROR_KINDS,
  type MirrorLine,
  type MirrorReport,
  mirrorReport,
  mirrorText,
} from '../registry-overrides/mirror-report.ts';
import { type ImageReference, parseImageReference } from '../rules/auth-lookup/image-reference.ts';
import { UsageError } from '../rules/errors.ts';
import { parseRegistriesConf, type Registry } from '../rules/mirrors/registries-conf.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { ACCESS_FLAGS, ACCESS_HELP, type AccessValues, registryClient } from './registry-access.ts';

const HELP = `
Prints the places that an image is pulled from, in the order in which they are tried, with the mirror set that names each,
and the places that are not tried, with the reason.

Usage: pullwright mirrors IMAGE... [--from DIR] [--registries-conf FILE] [--probe] [options]

  --from DIR               folder of manifests (or one file) with ImageDigestMirrorSets, ImageTagMirrorSets and
                           ImageContentSourcePolicies; may be given more than once
  --registries-conf FILE   registries.conf of a node; mirror sets of the same source win
  --probe                  ask every place for the manifest, in parallel, with the credential that CRI-O would use
  --output text|json|yaml  default text
${ACCESS_HELP}

Exits 1 when an image has no place left that may be asked, or, with --probe, none that answers. Problems of the mirror sets go to stderr.

Example: node main.ts mirrors registry.example.com/team/app:1 --from examples/fleet
`;

export const command: Command = {
  name: 'mirrors',
  summary: 'Show where an image is pulled from, in order, and why',
  help: HELP,
  permissions: {
    reads: ['<--from>', '<--registries-conf>', '<--authfile>', '<--ca>'],
    writes: [],
    hosts: [
      'none; with --probe the registries of the image and its mirrors, and the token services they name',
    ],
    api: [],
  },
  run,
};

async function run(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      from: { type: 'string', multiple: true },
      'registries-conf': { type: 'string' },
      output: { type: 'string', default: 'text' },
      probe: { type: 'boolean', default: false },
      ...ACCESS_FLAGS,
    },
  });
  const images = positionals.map(imageOf);
  if (images.length === 0) throw new UsageError('Cannot show mirrors: no image is given');
  const folders = await Promise.all((values.from ?? []).map((dir) => readFolder(dir, MIRROR_KINDS)));
  const registries = await registriesOf(values['registries-conf']);
  const objects = folders.flatMap((folder) => folder.manifests.map((manifest) => manifest.object));
  const resolved = images.map((image) => mirrorReport(image, objects, registries));
  const reports = values.probe ? await probed(resolved, values, io) : resolved;
  io.stdout.write(render(reports, values.output, io.stdout.columns));
  const problems = new Set([
    ...folders.flatMap((folder) =>
      folder.problems.map(({ file, line, message }) => `error: ${file}:${line}: ${message}`),
    ),
    ...reports.flatMap((report) => report.problems),
  ]);
  for (const problem of problems) io.stderr.write(`${problem}\n`);
  const usable = (line: MirrorLine): boolean =>
    line.skipped === undefined && (line.probe === undefined || line.probe.verdict === 'Valid');
  return reports.every((report) => report.candidates.some(usable)) ? 0 : 1;
}

/** The reports with what the registries say to each place that may be asked. */
async function probed(
  reports: readonly MirrorReport[],
  access: AccessValues,
  io: CommandIo,
): Promise<readonly MirrorReport[]> {
  const client = await registryClient(access, io.env);
  const lines = reports.flatMap((report) => report.candidates.filter((line) => line.skipped === undefined));
  const results = await probeAll(
    client,
    lines.map((line) => line.reference),
    { signal: io.signal },
  );
  const byReference = new Map(results.map((result): [string, ProbeResult] => [result.reference, result]));
  return reports.map((report) => ({
    ...report,
    candidates: report.candidates.map((line) => {
      const found = line.skipped === undefined ? byReference.get(line.reference) : undefined;
      if (found === undefined) return line;
      const { verdict, message, digest } = found;
      return { ...line, probe: { verdict, message, ...(digest === undefined ? {} : { digest }) } };
    }),
  }));
}

function imageOf(text: string): ImageReference {
  const parsed = parseImageReference(text);
  if (parsed.ok) return parsed.reference;
  throw new UsageError(`Cannot read image "${text}": ${parsed.goText}`);
}

async function registriesOf(path: string | undefined): Promise<readonly Registry[]> {
  if (path === undefined) return [];
  const text = await readFile(path, 'utf8').catch(() => {
    throw new UsageError(`Cannot read "${path}": wanted a readable registries.conf`);
  });
  return parseRegistriesConf(text, parseToml);
}

function render(reports: readonly MirrorReport[], output: string, columns: number | undefined): string {
  const whole: unknown = reports.length === 1 ? reports[0] : reports;
  switch (output) {
    case 'text':
      return reports.map((report) => mirrorText(report, columns)).join('\n');
    case 'json':
      return `${JSON.stringify(whole, null, 2)}\n`;
    case 'yaml':
      return toYaml(whole);
    default:
      throw new UsageError(`Unknown output "${output}": wanted text, json or yaml`);
  }
}
