/** `pullwright adapter import`: the configuration of HyperFleet's own adapter and Sentinel, as a section of a fleet. */

import { readFile } from 'node:fs/promises';
import { schema } from '../../charts/pull-secret-adapter/chart.ts';
import { parseYaml, toYaml } from '../kube/yaml.ts';
import { type ImportedNote, importSection } from '../pull-secret-adapter/import-section.ts';
import { errnoOf, PullwrightError, UsageError } from '../rules/errors.ts';
import { isRecord } from '../rules/record.ts';
import { jsonText } from '../rules/text/json-text.ts';
import { onOneLine } from '../rules/text/printable.ts';
import { yamlMistake } from '../rules/text/yaml-mistake.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { type CommandTable, defineCommand } from './define.ts';
import { outputFlag } from './flags/common.ts';
import { type Flags, file, text } from './flags/flag.ts';
import type { Given } from './flags/parse.ts';

const TABLE = {
  name: 'adapter-import',
  program: 'pullwright adapter import',
  summary: "Make a section of a fleet of HyperFleet's own configuration (pullwright adapter import)",
  about: [
    "Reads broker.yaml, the AdapterConfig and Sentinel's file of HyperFleet's own programs, and the variables BROKER_* and HYPERFLEET_* of the environment, which win over files. Prints the section systems.pull-secret-adapter of a fleet, below comments that name everything that could not be carried over, and why. A broker's URL and a token are never printed.",
  ],
  flags: {
    broker: file({ help: 'broker.yaml' }),
    'adapter-config': file({ help: 'the AdapterConfig' }),
    'sentinel-config': file({ help: "Sentinel's configuration" }),
    'job-google-service-account': text({
      value: 'EMAIL',
      help: 'Google service account of the Jobs, which stands in none of the files',
    }),
    output: outputFlag(['text', 'json'], 'the form of the result; json: section and notes for programs'),
  },
  exitCodes:
    '0 the section means the same (what needs nothing, and steps outside of it, are named), 1 something is lost or the section wants an edit, 2 wrong usage',
  examples: [
    'pullwright adapter import --broker broker.yaml --adapter-config adapter.yaml --sentinel-config config.yaml > section.yaml',
  ],
  permissions: { reads: [], writes: [], hosts: ['none'], api: [] },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const files = {
    broker: await documentIn(flags.broker),
    adapter: await documentIn(flags['adapter-config']),
    sentinel: await documentIn(flags['sentinel-config']),
  };
  const { section: imported, notes: own } = importSection(files, io.env);
  if (own.length === 0)
    throw new UsageError(
      'Cannot import: expected --broker, --adapter-config or --sentinel-config with a file, or variables BROKER_* and HYPERFLEET_*',
    );
  const account = flags['job-google-service-account'];
  const section = account === undefined ? imported : { ...imported, jobGoogleServiceAccount: account };
  const notes = [...own, ...missing(section)];
  io.stdout.write(
    flags.output === 'json' ? jsonText<AdapterImportOutput>({ section, notes }) : asYaml(section, notes),
  );
  return notes.some(({ outcome }) => outcome === 'changed' || outcome === 'dropped') ? 1 : 0;
}

/** What is printed as JSON. */
export interface AdapterImportOutput {
  readonly section: Readonly<Record<string, unknown>>;
  readonly notes: readonly ImportedNote[];
}

/** @throws PullwrightError for a file that cannot be read; what it says is not repeated, since it may hold a password */
async function documentIn(path: string | undefined): Promise<unknown> {
  if (path === undefined) return undefined;
  let content: string;
  try {
    content = await readFile(path, 'utf8');
  } catch (error) {
    throw unreadable(
      path,
      errnoOf(error) === 'ENOENT' ? 'it is not there' : 'it is no file that can be read',
    );
  }
  try {
    const document: unknown = parseYaml(content);
    if (isRecord(document)) return document;
  } catch (error) {
    const why = error instanceof Error ? yamlMistake(error) : 'it cannot be parsed';
    throw unreadable(path, `it is not YAML (${why}), expected a map`);
  }
  throw unreadable(path, 'it holds no map');
}

function unreadable(path: string, state: string): PullwrightError {
  return new PullwrightError(`Cannot import "${path}": ${state}`, {
    code: 'FileUnreadable',
    disposition: 'terminal',
  });
}

/** What a fleet wants beyond that. */
function missing(section: Readonly<Record<string, unknown>>): readonly ImportedNote[] {
  const { success, error } = schema.safeParse(section);
  if (success) return [];
  return error.issues.map(({ path, message }) => ({
    outcome: 'changed',
    subject: `systems.pull-secret-adapter${path.map((part) => `.${String(part)}`).join('')}`,
    message: onOneLine(message),
  }));
}

const HEADINGS = {
  dropped: 'Is lost, or means something else here:',
  changed: 'To edit below:',
  todo: 'Left to do outside of this section:',
  unneeded: 'Needs nothing:',
  carried: 'Carried over:',
} as const;

function asYaml(section: Readonly<Record<string, unknown>>, notes: readonly ImportedNote[]): string {
  const lines = Object.entries(HEADINGS).flatMap(([outcome, heading]) => {
    const found = notes.filter((note) => note.outcome === outcome);
    return found.length === 0
      ? []
      : [heading, ...found.map(({ subject, message }) => `  ${subject}: ${message}`)];
  });
  const comments = lines.map((line) => `# ${line}\n`).join('');
  return `${comments}${toYaml({ systems: { 'pull-secret-adapter': section } }, { lineWidth: 0 })}`;
}
