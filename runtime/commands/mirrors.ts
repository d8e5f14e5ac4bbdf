/** `pullwright mirrors IMAGE`: where an image is really pulled from, in which order, and why. */
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { parse as parseToml } from 'smol-toml';
import { stringify } from 'yaml';
import { readFolder } from '../controller/folder.ts';
import {
  MIRROR_KINDS,
  type MirrorReport,
  mirrorReport,
  mirrorText,
} from '../registry-overrides/mirror-report.ts';
import { UsageError } from '../rules/errors.ts';
import { type ImageReference, parseImageReference } from '../rules/image-reference.ts';
import { parseRegistriesConf, type Registry } from '../rules/registries-conf.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';

const HELP = `
Prints the places that an image is pulled from, in the order in which they are tried, with the mirror set that names each,
and the places that are not tried, with the reason.

Usage: pullwright mirrors IMAGE... [--from DIR] [--registries-conf FILE] [--output text|json|yaml]

  --from DIR               folder of manifests (or one file) with ImageDigestMirrorSets, ImageTagMirrorSets and
                           ImageContentSourcePolicies; may be given more than once
  --registries-conf FILE   registries.conf of a node; mirror sets of the same source win
  --output text|json|yaml  default text

Exits 1 when an image has no place left that may be asked. Problems of the mirror sets go to stderr.

Example: node main.ts mirrors registry.example.com/team/app:1 --from examples/fleet
`;

export const command: Command = {
  name: 'mirrors',
  summary: 'Show where an image is pulled from, in order, and why',
  help: HELP,
  permissions: { reads: ['<--from>', '<--registries-conf>'], writes: [], hosts: ['none'], api: [] },
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
    },
  });
  const images = positionals.map(imageOf);
  if (images.length === 0) throw new UsageError('Cannot show mirrors: no image is given');
  const folders = await Promise.all((values.from ?? []).map((dir) => readFolder(dir, MIRROR_KINDS)));
  const registries = await registriesOf(values['registries-conf']);
  const objects = folders.flatMap((folder) => folder.manifests.map((manifest) => manifest.object));
  const reports = images.map((image) => mirrorReport(image, objects, registries));
  io.stdout.write(render(reports, values.output));
  const problems = new Set([
    ...folders.flatMap((folder) =>
      folder.problems.map(({ file, line, message }) => `error: ${file}:${line}: ${message}`),
    ),
    ...reports.flatMap((report) => report.problems),
  ]);
  for (const problem of problems) io.stderr.write(`${problem}\n`);
  return reports.every((report) => report.candidates.some((line) => line.skipped === undefined)) ? 0 : 1;
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

function render(reports: readonly MirrorReport[], output: string): string {
  const whole: unknown = reports.length === 1 ? reports[0] : reports;
  switch (output) {
    case 'text':
      return reports.map(mirrorText).join('\n');
    case 'json':
      return `${JSON.stringify(whole, null, 2)}\n`;
    case 'yaml':
      return stringify(whole);
    default:
      throw new UsageError(`Unknown output "${output}": wanted text, json or yaml`);
  }
}
