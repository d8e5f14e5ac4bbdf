/** `pullwright test FILE...`: unit tests for pull credentials, judged offline by what `explain` knows. */

import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { ObjectStore } from '../controller/store.ts';
import { parseYaml, toYaml } from '../kube/yaml.ts';
import { parseImageReference } from '../rules/auth-lookup/image-reference.ts';
import { type Expectation, judgeExpectation, readExpectations } from '../rules/diagnose/expectations.ts';
import { PullwrightError, UsageError } from '../rules/errors.ts';
import type { FileFinding } from '../rules/text/findings.ts';
import { jsonText } from '../rules/text/json-text.ts';
import { junitXml } from '../rules/text/junit.ts';
import { oneLined, onOneLine } from '../rules/text/printable.ts';
import { type SarifLog, sarifLog } from '../rules/text/sarif.ts';
import { clusterFlag } from './choose-cluster.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { type CommandTable, defineCommand } from './define.ts';
import { readFolders } from './explain/folders.ts';
import { explainIn, findWorld } from './explain/world.ts';
import { outputFlag } from './flags/common.ts';
import { type Flags, folder, several } from './flags/flag.ts';
import type { Given } from './flags/parse.ts';
import { type PodPuller, parsePodName } from './pod-spec.ts';
import { writeProblems } from './problems.ts';

const TABLE = {
  name: 'test',
  summary: 'Judge expectations about pull credentials offline (JUnit for pipelines)',
  about: [
    'Judges expectations about pull credentials against a folder of manifests, without a cluster: which Secret and key an image is pulled with, or that none is offered.',
  ],
  args: [{ name: 'FILE...', help: 'files of expectations' }],
  flags: {
    from: several(folder({ help: 'a folder of manifests, in place of "from" in the file' })),
    cluster: clusterFlag,
    output: outputFlag(
      ['text', 'json', 'yaml', 'junit', 'sarif'],
      'the form of the result; junit and sarif: reports that CI systems read',
    ),
  },
  notes: [
    'A file: from (folders, relative to it) and tests, each with image and expect; optionally name, namespace, pod, serviceAccount, node, and at (a mirror). expect is denied, anonymous, or secret, key and username of the first credential.',
  ],
  exitCodes: '0 all hold, 1 one does not, or could not be judged, 2 wrong usage',
  examples: ['pullwright test credentials.test.yaml --output junit > report.xml'],
  permissions: { reads: ['<FILE>'], writes: [], hosts: ['none'], api: [] },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);

/** Of one expectation. */
export interface TestOutcome {
  readonly file: string;
  readonly name: string;
  /** Why it does not hold; absent when it does. */
  readonly failure?: string;
}

async function run(
  { flags: values, args: positionals }: Given<typeof TABLE.flags>,
  io: CommandIo,
): Promise<ExitCode> {
  if (positionals.length === 0) throw new UsageError('Cannot test: no file is given');
  const outcomes: TestOutcome[] = [];
  for (const file of positionals) outcomes.push(...(await judgeFile(file, values, io)));
  io.stdout.write(RENDERERS[values.output](outcomes));
  return outcomes.some(({ failure }) => failure !== undefined) ? 1 : 0;
}

async function judgeFile(
  file: string,
  { from, cluster }: { readonly from: readonly string[] | undefined; readonly cluster: string | undefined },
  io: CommandIo,
): Promise<readonly TestOutcome[]> {
  const read = readExpectations(await parsed(file));
  if (!read.ok) throw invalid(file, '', read.problems);
  const dirs = from ?? read.from.map((dir) => resolve(dirname(file), dir));
  if (dirs.length === 0)
    throw new UsageError(`Cannot test "${file}": it names no folder, and there is no --from`);
  const { store, problems, notes, hosted } = await readFolders(dirs, { cluster });
  writeProblems(io, [...problems, ...notes]);
  return read.expectations.map((expectation) => {
    const failure = judgeOne(expectation, store, hosted);
    return { file, name: expectation.name, ...(failure === undefined ? {} : { failure }) };
  });
}

function judgeOne(expectation: Expectation, store: ObjectStore, hosted: boolean): string | undefined {
  const image = parseImageReference(expectation.image);
  if (!image.ok) return `the image does not parse: ${image.goText}`;
  const puller = pullerOf(expectation);
  if (puller === undefined) return `"${expectation.pod}" is no pod, expected a name or deploy/name`;
  try {
    return judgeExpectation(expectation, explainIn(findWorld(store, puller, { hosted }), image.reference));
  } catch (error) {
    if (error instanceof PullwrightError) return error.message;
    throw error;
  }
}

function pullerOf({ namespace, serviceAccount, pod, node }: Expectation): PodPuller | undefined {
  const base = {
    namespace: namespace ?? 'default',
    serviceAccount: serviceAccount ?? 'default',
    ...(node === undefined ? {} : { node }),
  };
  if (pod === undefined) return base;
  const parsedPod = parsePodName(pod);
  return parsedPod === undefined ? undefined : { ...base, pod: parsedPod };
}

async function parsed(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    const denied = error instanceof Error && 'code' in error && error.code === 'ERR_ACCESS_DENIED';
    throw invalid(file, denied ? ': reading it is not granted to this process' : ': it cannot be read');
  });
  try {
    return parseYaml(text);
  } catch (error) {
    throw invalid(
      file,
      `: it is no YAML: ${error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : ''}`,
    );
  }
}

function invalid(file: string, why: string, details?: readonly string[]): PullwrightError {
  return new PullwrightError(onOneLine(`Cannot read tests "${file}"${why}`), {
    code: 'TestsInvalid',
    disposition: 'terminal',
    ...(details === undefined ? {} : { details: details.map(onOneLine) }),
  });
}

const RENDERERS: Readonly<
  Record<'text' | 'json' | 'yaml' | 'junit' | 'sarif', (outcomes: readonly TestOutcome[]) => string>
> = {
  text: (outcomes) => {
    const lines = oneLined(outcomes).map(({ name, failure }) =>
      failure === undefined ? `ok    ${name}` : `FAIL  ${name}\n      ${failure}`,
    );
    const failed = outcomes.filter(({ failure }) => failure !== undefined).length;
    return `${[...lines, `${outcomes.length - failed} passed, ${failed} failed`].join('\n')}\n`;
  },
  json: (outcomes) => jsonText<readonly TestOutcome[]>(outcomes),
  yaml: (outcomes) => toYaml(outcomes, { lineWidth: 0 }),
  junit: (outcomes) =>
    junitXml(
      'pull credentials',
      outcomes.map(({ file, ...rest }) => ({ classname: file, ...rest })),
    ),
  sarif: (outcomes) => jsonText<SarifLog>(sarifLog(outcomes.flatMap(findingOf))),
};

function findingOf({ file, name, failure }: TestOutcome): readonly FileFinding[] {
  if (failure === undefined) return [];
  return [{ severity: 'error', code: 'ExpectationFailed', file, subject: name, message: failure }];
}
