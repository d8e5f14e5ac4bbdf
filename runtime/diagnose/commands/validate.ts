/** `pullwright validate FILE...`: finds errors in pull secrets, mirror sets, profiles and fleets before they are applied. */
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import type { FleetError as FleetErrors } from '../../../charts/fleet-problems.ts';
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import { findingText, type JunitCase } from '../../cli/findings.ts';
import { fromFlag, type Given, outputFlag, toggle } from '../../cli/flags.ts';
import { capped } from '../../cli/terminal.ts';
import { UsageError } from '../../core/errors.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { redact } from '../../core/redacted.ts';
import { counted, oneLined } from '../../core/text.ts';
import { kubeletRefusal } from '../../credential-provider/config.ts';
import {
  folderOf,
  isTemplate,
  type Manifest,
  type Manifests,
  readFolder,
} from '../../engine/offline/manifests.ts';
import { parseYaml } from '../../kube/yaml.ts';
import { problem, type ValidationProblem, validateDockerConfig } from '../checks/docker-config.ts';
import {
  isNodeMirrorKind,
  judgeManifests,
  LISTING_KINDS,
  NODE_MIRROR_KINDS,
  SIDECAR_SET,
  selectionNotes,
  VALIDATED_KINDS,
} from '../checks/documents.ts';
import type { Finding } from '../model/types.ts';
import { FILE_FORMS, inForm } from '../views/text.ts';

const TABLE = {
  name: 'validate',
  about: [
    'Validates pull secrets (Secrets, docker config files), mirror sets, PullSecretProfiles with their grants, SidecarSets, CRIOCredentialProviderConfigs, kubelet CredentialProviderConfigs and fleets: reports every problem with file, line and path. Shows no Secret values.',
  ],
  args: [
    {
      name: 'FILE...',
      help: 'a file or a folder of manifests, a docker config, a fleet.yaml, or - for standard input',
    },
  ],
  flags: {
    from: { ...fromFlag, help: 'the same as FILE' },
    strict: toggle({ help: 'treat warnings as errors' }),
    'ignore-others': toggle({
      help: 'ignore files without these kinds, for hooks that pass every changed file',
    }),
    output: outputFlag(FILE_FORMS, 'output format; sarif and junit: reports for CI systems'),
  },
  exitCodes: '0 no errors, 1 errors (with --strict, or warnings), 2 wrong usage',
  examples: ['pullwright validate additional-pull-secret.yaml'],
  permissions: { reads: ['<FILE>'], hosts: ['none'], api: [] },
} as const;

export const command: Command = defineCommand(TABLE, run);

async function run({ flags: values, args }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const positionals = [...args, ...(values.from ?? [])];
  if (positionals.length === 0) throw new UsageError('Cannot validate: a file is required');
  const read = await Array.fromAsync(positionals, (path) => readInput(path, io));
  const inputs = values['ignore-others'] ? read.filter(isOfOurs) : read;
  const manifests = inputs.flatMap((input) => input.manifests);
  const others = inputs.flatMap((input) => input.others);
  const found = [...inputs.flatMap((input) => input.problems), ...judgeManifests(manifests, others)];
  const problems = found.toSorted(compare);
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const judged = inputs.reduce((sum, input) => sum + judgedIn(input), 0);
  io.stdout.write(
    inForm(values.output, {
      data: { judged, problems },
      findings: problems,
      suite: 'pull secrets',
      cases: casesOf(problems, inputs, values.strict),
      text: () => asText(problems, judged, io.stdout.isTTY === true),
    }),
  );
  const namespaces = others.filter(({ kind }) => kind === 'Namespace');
  for (const note of selectionNotes(manifests, namespaces)) io.stderr.write(`${note}\n`);
  const isEmpty = judged + problems.length === 0 && !values['ignore-others'];
  if (isEmpty) io.stderr.write('The input has no objects of a supported kind\n');
  return errors > 0 || isEmpty || (values.strict && problems.length > 0) ? 1 : 0;
}

/** Reports whether the input has, or may have, objects to validate. Text without any of the kinds is ignored. */
function isOfOurs(input: Input): boolean {
  const { text } = input;
  if (judgedIn(input) > 0 || text === undefined) return true;
  return !isTemplate(text) && (text.match(/\w+/g) ?? []).some((word) => VALIDATED_KINDS.has(word));
}

/** Kinds that are not validated: profiles select namespaces, the others list pull secrets. Their problems are not reported. */
const OTHER_KINDS: ReadonlySet<string> = new Set(['Namespace', ...LISTING_KINDS]);

/** The input of a folder or file, read once for each of the two sets of kinds. @param dir prefix of its file names */
function inputFrom(own: Manifests, { manifests: others }: Manifests, dir: string): Input {
  return {
    manifests: own.manifests
      .filter(({ object }) => VALIDATED_KINDS.has(object.kind) && !isForeign(object))
      .map((one) => ({ ...one, file: dir + one.file })),
    others: others.map(({ object }) => object).filter(({ kind }) => OTHER_KINDS.has(kind)),
    problems: own.problems.map(({ file, line, message, first }) => {
      const told = problem('error', first === undefined ? 'Unreadable' : 'GivenTwice', '', message);
      return inFile(told, { file: dir + file, line });
    }),
  };
}

/** Kinds of other API groups, such as the Image of image.openshift.io, which is in every dump. */
function isForeign(object: KubeObject): boolean {
  if (object.kind === SIDECAR_SET) return !object.apiVersion.startsWith('apps.kruise.io/');
  return NODE_MIRROR_KINDS.includes(object.kind) && !isNodeMirrorKind(object);
}

interface Input {
  readonly manifests: readonly Manifest[];
  readonly others: readonly KubeObject[];
  readonly problems: readonly Finding[];
  /** Content of a single file of manifests. */
  readonly text?: string;
  /** Path of a file that is not a manifest, such as a docker config. */
  readonly file?: string;
}

/** Number of validated objects. */
function judgedIn({ manifests, file }: Input): number {
  return manifests.length + (file === undefined ? 0 : 1);
}

async function readInput(path: string, io: CommandIo): Promise<Input> {
  const text = path === '-' ? await textOf(io.stdin) : await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) {
    // A folder, or a path whose error `readFolder` reports. Folders of several clusters may repeat objects.
    const folder = await readFolder(path, VALIDATED_KINDS);
    const problems = folder.problems.filter(
      ({ file, first }) => first === undefined || dirname(first.file) === dirname(file),
    );
    return inputFrom({ ...folder, problems }, await readFolder(path, OTHER_KINDS), `${path}/`);
  }
  const file = path === '-' ? 'standard input' : path;
  const told = await documentProblems(file, text);
  if (told !== undefined) return { manifests: [], others: [], problems: told, file };
  const texts = [{ file, text }];
  return { ...inputFrom(folderOf(texts, VALIDATED_KINDS), folderOf(texts, OTHER_KINDS), ''), text };
}

/** Problems of a file that is not a manifest; undefined for manifests. */
async function documentProblems(file: string, text: string): Promise<readonly Finding[] | undefined> {
  if (isDockerConfig(text))
    return validateDockerConfig(redact(text), 'config.json', new Date()).map((one) => inFile(one, { file }));
  if (isFleet(text)) return judgeFleet(file, text);
  // The kubelet's configuration file: it has no name, so it is not an API object.
  if (!/^kind:\s*["']?CredentialProviderConfig\b/m.test(text)) return undefined;
  const message = kubeletRefusal(text, parseYaml);
  if (message === undefined) return [];
  return [inFile(problem('error', 'KubeletRefuses', '', message), { file })];
}

/** Detects a fleet by its kind, or by a list of clusters without a kind. */
function isFleet(text: string): boolean {
  const kind = /^kind:[ \t]*["']?([A-Za-z]+)/m.exec(text)?.[1];
  return kind === 'Fleet' || (kind === undefined && /^clusters:/m.test(text));
}

/** Detects JSON that is neither a manifest nor a fleet: the output of `docker login`, valid or not. */
function isDockerConfig(text: string): boolean {
  return /^\s*[{[]/.test(text) && !/"kind"\s*:/.test(text) && !/"clusters"\s*:/.test(text);
}

/** The problem of a file that is not a manifest, or cannot be read. */
function inFile(
  { code: check, position, ...told }: ValidationProblem,
  where: Pick<Finding, 'file' | 'line'>,
) {
  const at = position === undefined ? {} : { line: position.line, column: position.column };
  return { ...where, ...at, check, subject: '', ...told };
}

function compare(a: Finding, b: Finding): number {
  const [fileA, fileB] = [a.file ?? '', b.file ?? ''];
  if (fileA !== fileB) return fileA < fileB ? -1 : 1;
  return (a.line ?? 0) - (b.line ?? 0);
}

/** Loads the charts on demand, because they load large libraries. */
async function judgeFleet(name: string, text: string): Promise<readonly Finding[]> {
  const { parseFleet } = await import('../../../charts/fleet.ts');
  const { FleetError, pathText } = await import('../../../charts/fleet-problems.ts');
  const told = (problems: FleetErrors['problems'], severity: ValidationProblem['severity']): Finding[] =>
    problems.map(({ path, text: message, ...at }) => ({
      ...at,
      file: name,
      check: severity === 'error' ? 'FleetInvalid' : 'FleetSurprising',
      severity,
      subject: '',
      path: pathText(path),
      message,
    }));
  try {
    return told(parseFleet(text, name).warnings, 'warning');
  } catch (error) {
    if (!(error instanceof FleetError)) throw error;
    return told(error.problems, 'error');
  }
}

/** Returns a case for each problem, and one for each file without problems. Warnings fail if `strict`. */
function casesOf(problems: readonly Finding[], inputs: readonly Input[], strict: boolean) {
  const wrong = problems.map((problem): JunitCase => {
    const { severity, file = '', line, check } = problem;
    const name = line === undefined ? check : `${check} at line ${line}`;
    const said = findingText(problem);
    const fails = severity === 'error' || strict;
    return { classname: file, name, ...(fails ? { failure: said } : { note: `warning: ${said}` }) };
  });
  const named = new Set(problems.map(({ file }) => file));
  const files = inputs.flatMap(({ manifests, file }) =>
    [...manifests.map((one) => one.file), file ?? []].flat(),
  );
  const well = new Set(files).difference(named);
  return [...wrong, ...[...well].map((classname) => ({ classname, name: 'no problem' }))];
}

/** @param isTTY limits the number of lines on a terminal; other outputs may be searched and get all */
function asText(problems: readonly Finding[], judged: number, isTTY: boolean): string {
  const lines = oneLined(problems).map((problem) => {
    const { severity, file, line, column, check } = problem;
    const place = [file, line, column].filter((part) => part !== undefined).join(':');
    return `${place}: ${severity}: ${findingText(problem)} [${check}]`;
  });
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const shown = isTTY ? capped(lines, 200, 'pipe the output, or use --output json') : lines;
  return `${[...shown, `${judged} checked, ${counted(errors, 'error')}, ${counted(problems.length - errors, 'warning')}`].join('\n')}\n`;
}
