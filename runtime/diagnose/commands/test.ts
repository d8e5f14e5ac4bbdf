/** `pullwright test FILE...`: unit tests for pull credentials, evaluated offline with the code of `explain`. */
import assert from 'node:assert/strict';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { type Command, type CommandIo, defineCommand } from '../../cli/command.ts';
import { fromFlag, type Given, outputFlag } from '../../cli/flags.ts';
import { writeProblems } from '../../cli/terminal.ts';
import { describeError, PullwrightError, UsageError } from '../../core/errors.ts';
import { parseImageReference } from '../../core/image-reference.ts';
import { readValue } from '../../core/kubernetes/read-spec.ts';
import { isRecord } from '../../core/record.ts';
import { oneLined, onOneLine } from '../../core/text.ts';
import { folderOf, readText } from '../../engine/offline/manifests.ts';
import type { ObjectStore } from '../../engine/store.ts';
import { parseYaml } from '../../kube/yaml.ts';
import { clusterIn, FOLDER_KINDS, locate, readCluster } from '../model/look.ts';
import { clusterFlag, type LookValues } from '../model/objects.ts';
import { explainIn, imageOf, parsePodName, pullBy, pullModel, WORKLOAD_KINDS } from '../model/pull.ts';
import type { EntryPlace, Explanation } from '../model/types.ts';
import { FILE_FORMS, fixLines, inForm } from '../views/text.ts';
import { pullerOf } from './explain.ts';

// Expectations about pull credentials, read from a document and compared with an explanation.

const text = z.string().optional();
/** Expected credential of a pull. */
const EXPECTED = z
  .strictObject({
    /** `Secret/namespace/name` or a suffix of it. For an entry of the node's file, the file or the source Secret matches. */
    secret: text,
    key: text,
    username: text,
  })
  .refine((expected) => Object.keys(expected).length > 0);
const EXPECTATION = z.strictObject({
  /** @default {the image} */
  name: text,
  image: z.string(),
  namespace: text,
  pod: text,
  serviceAccount: text,
  node: text,
  /** Prefix of a CRI-O pull source. @default {check the kubelet's first credential} */
  at: text,
  /** `denied`: no credential is sent. `anonymous`: an attempt without a credential is made. */
  expect: z.union([z.enum(['denied', 'anonymous']), EXPECTED], {
    error: 'must be denied, anonymous, or an object with secret, key or username',
  }),
});
const FILE = z.strictObject({
  /** Folders of manifests. */
  from: z
    .union([z.string().transform((dir) => [dir]), z.array(z.string())], {
      error: 'must be a folder or a list of folders',
    })
    .optional(),
  tests: z.array(EXPECTATION).min(1),
});
type Expectation = z.infer<typeof EXPECTATION>;

/** Reads a document `{ from?: [...], tests: [{ image, expect, ... }] }`. Problems name the field's path. */
export function readExpectations(document: unknown) {
  return readValue(document, FILE, '');
}

/** The credential that would be sent, or why there is none. */
type Found =
  | { readonly what: 'entry'; readonly entry: EntryPlace; readonly username: string }
  | { readonly what: 'anonymous' | 'blocked' | 'unknown'; readonly why: string };

/** Returns why `expect` is not met; undefined if it is. */
export function judgeExpectation(
  { at, expect }: Pick<Expectation, 'at' | 'expect'>,
  explanation: Explanation,
): string | undefined {
  const found = foundAt(explanation, at);
  if (found.what !== 'entry') {
    if (found.what !== 'unknown' && (expect === 'denied' || expect === found.what)) return undefined;
    return found.what === 'blocked' ? found.why : `expected ${JSON.stringify(expect)}, ${found.why}`;
  }
  const { key, origin, source } = found.entry;
  const differs = typeof expect === 'string' ? 'expected no credential' : differences(expect, found);
  return differs && `${differs}, found user "${found.username}" by "${key}" of ${origin ?? source}`;
}

function foundAt({ kubelet, places }: Explanation, at: string | undefined): Found {
  const place = places.find(({ reference }) => at !== undefined && reference.startsWith(at));
  if (at !== undefined && place === undefined)
    return { what: 'blocked', why: `no pull source starts with "${at}"` };
  const sent = place?.crio ?? { what: 'kubelet' };
  if (sent.what === 'entry' || sent.what === 'unknown') return sent;
  if (sent.what === 'nothing') return { what: 'anonymous', why: sent.why };
  if (sent.what === 'failure') return { what: 'blocked', why: sent.why };
  if (sent.what === 'helper')
    return { what: 'unknown', why: `but the credential helper "${sent.helper}" cannot run offline` };
  const { blockedBy, tried, unknown } = kubelet;
  if (blockedBy !== undefined)
    return { what: 'blocked', why: `the pod cannot pull any image: ${blockedBy.source} ${blockedBy.why}` };
  if (unknown !== undefined) return { what: 'unknown', why: unknown };
  const [first] = tried;
  if (first === undefined) return { what: 'anonymous', why: 'no credential matches' };
  return { what: 'entry', entry: first, username: first.username };
}

function differences({ secret, key, username }: z.infer<typeof EXPECTED>, found: Found & { what: 'entry' }) {
  const names = [found.entry.origin, found.entry.source];
  if (secret !== undefined && !names.some((name) => name === secret || name?.endsWith(`/${secret}`)))
    return `expected Secret "${secret}"`;
  if (key !== undefined && key !== found.entry.key) return `expected key "${key}"`;
  return username !== undefined && username !== found.username ? `expected user "${username}"` : undefined;
}

const TABLE = {
  name: 'test',
  about: [
    'Tests expectations about pull credentials against a folder of manifests, without a cluster: the Secret and key that pull an image, or that no credential is sent.',
  ],
  args: [{ name: 'FILE...', help: 'files of expectations' }],
  flags: {
    from: {
      ...fromFlag,
      help: 'folder or file of manifests, or - for standard input; overrides "from" in the file',
    },
    cluster: clusterFlag,
    output: outputFlag(FILE_FORMS, 'output format; junit and sarif: reports for CI systems'),
  },
  notes: [
    'A file has from (folders, relative to it) and tests, each with image and expect; optional: name, namespace, pod, serviceAccount, node, and at (a mirror). expect is denied, anonymous, or secret, key and username of the first credential.',
  ],
  exitCodes: '0 all passed, 1 a test failed or could not run, 2 wrong usage',
  examples: ['pullwright test credentials.test.yaml --output junit > report.xml'],
  permissions: { reads: ['<FILE>'], hosts: ['none'], api: [] },
} as const;

export const command: Command = defineCommand(TABLE, run);

async function run({ flags: values, args: positionals }: Given<typeof TABLE.flags>, io: CommandIo) {
  if (positionals.length === 0) throw new UsageError('Cannot test: a file is required');
  const outcomes = (await Array.fromAsync(positionals, (file) => judgeFile(file, values, io))).flat();
  io.stdout.write(
    inForm(values.output, {
      data: outcomes,
      findings: outcomes.flatMap(({ file, name: subject, failure: message }) =>
        message === undefined
          ? []
          : [{ severity: 'error', check: 'ExpectationFailed', file, subject, message }],
      ),
      suite: 'pull credentials',
      cases: outcomes.map(({ file: classname, findings: _findings, ...rest }) => ({ classname, ...rest })),
      text: () => asText(outcomes),
    }),
  );
  return outcomes.some(({ failure }) => failure !== undefined) ? 1 : 0;
}

/** Result of one expectation. */
type TestOutcome = Awaited<ReturnType<typeof judgeFile>>[number];

async function judgeFile(file: string, { from, cluster }: LookValues, io: CommandIo) {
  const read = readExpectations(await parsed(file));
  if (read.value === undefined) throw invalid(file, '', read.problems);
  const { tests, from: own = [] } = read.value;
  const dirs = from ?? own.map((dir) => resolve(dirname(file), dir));
  if (dirs.length === 0)
    throw new UsageError(`Cannot test "${file}": "from" in the file or --from is required`);
  const { store, problems, notes, hosted } = await readCluster({ from: dirs, cluster }, [], io);
  writeProblems(io, [...problems, ...notes]);
  return tests.map((expectation) => ({
    file,
    name: expectation.name ?? expectation.image,
    ...judgeOne(expectation, store, hosted),
  }));
}

/** Why the expectation is not met, with the findings of `explain` for the image; empty if it is. */
function judgeOne(expectation: Expectation, store: ObjectStore, hosted: boolean) {
  try {
    const reader = pullModel(store, pullerOf(expectation, 'pod'), { hosted });
    const explanation = explainIn(reader, imageOf(expectation.image));
    const failure = judgeExpectation(expectation, explanation);
    return failure === undefined ? {} : { failure, findings: explanation.findings };
  } catch (error) {
    if (error instanceof PullwrightError || error instanceof UsageError) return { failure: error.message };
    throw error;
  }
}

async function parsed(file: string): Promise<unknown> {
  const text = await readText(file, 'tests ');
  try {
    return parseYaml(text);
  } catch (error) {
    throw invalid(file, `: invalid YAML: ${describeError(error).split('\n', 1)[0]}`);
  }
}

function invalid(file: string, why: string, details?: readonly string[]): PullwrightError {
  return new PullwrightError(onOneLine(`Cannot read tests "${file}"${why}`), {
    code: 'TestsInvalid',
    retryPolicy: 'terminal',
    ...(details === undefined ? {} : { details: details.map(onOneLine) }),
  });
}

function asText(outcomes: readonly TestOutcome[]): string {
  const lines = oneLined(outcomes).flatMap(({ name, failure, findings = [] }) => {
    if (failure === undefined) return [`ok    ${name}`];
    const found = findings.flatMap((one) => [`${one.severity}: ${one.message}`, ...fixLines(one)]);
    return [`FAIL  ${name}`, ...[failure, ...found].map((line) => `      ${line}`)];
  });
  const failed = outcomes.filter(({ failure }) => failure !== undefined).length;
  return `${[...lines, `${outcomes.length - failed} passed, ${failed} failed`].join('\n')}\n`;
}

// Test helpers of `@pullwright/charts/testing`: assert the pull credential of a chart's pod, with the code of `pullwright test`.
// They work with every test runner, because failed expectations throw.

/** Objects to test: a cdk8s chart, a list of objects and charts, or the files returned by `renderTree`. */
export type PullSources = { toJson(): readonly unknown[] } | readonly unknown[] | ReadonlyMap<string, string>;

/** Assertions about an image pull of a pod. Each method throws an `AssertionError` if it fails. */
export interface ExpectedPull {
  /** Asserts that the kubelet's first credential is from this Secret: `team`, or `Secret/shop/team`. */
  with(secret: string): void;
  /** Asserts that the kubelet's first credential has this key, such as `quay.io/team`. */
  withKey(key: string): void;
  /** Asserts that no credential is sent and one anonymous attempt is made. */
  anonymously(): void;
  /** Selects the CRI-O pull source whose reference starts with `at`, such as a mirror, for the assertion. */
  at(at: string): Pick<ExpectedPull, 'with' | 'withKey' | 'anonymously'>;
}

/** A pod under test. */
export interface PullingPod {
  /** Selects an image, which the pod spec need not contain. */
  pulls(image: string): ExpectedPull;
}

/** Entry point of the assertions. */
export interface ExpectedPulls {
  /**
   * Selects a pod or workload: `web` for any kind, or `deploy/web`. Several matches need a namespace.
   *
   * @throws AssertionError if none or several match
   */
  pod(name: string, namespace?: string): PullingPod;
}

/**
 * Reads `sources` as one cluster. For Secrets that are not in Git, pass a {@link standInSecret}.
 *
 * @throws AssertionError if an object is invalid
 * @throws TypeError if an argument has an unsupported type
 */
export function expectPull(...sources: readonly PullSources[]): ExpectedPulls {
  const texts = sources.flatMap((source, index) => textsOf(source, `argument ${index + 1}`));
  const { store, hosted, problems } = clusterIn([locate('.', folderOf(texts, FOLDER_KINDS), true)]);
  assert.deepEqual(problems, [], `Cannot read every object: ${problems.join('; ')}`);
  return {
    pod: (name, namespace) => {
      const puller = findNamed(store, name, namespace);
      return {
        pulls: (image) => {
          const parsed = parseImageReference(image);
          assert.ok(parsed.ok, `invalid image "${image}"`);
          return expectedPull(image, explainIn(pullModel(store, puller, { hosted }), parsed.reference));
        },
      };
    },
  };
}

/** Creates a pull secret with an entry for each of `keys` and a fake password, in place of one that an operator syncs. */
export function standInSecret(namespace: string, name: string, keys: readonly string[]): object {
  const auth = Buffer.from(`${name}:stand-in`).toString('base64');
  const config = JSON.stringify({ auths: Object.fromEntries(keys.map((key) => [key, { auth }])) });
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(config).toString('base64') },
  };
}

function textsOf(source: PullSources, file: string) {
  if (source instanceof Map)
    return [...source].map(([path, text]: [string, string]) => ({ file: path, text }));
  return [{ file, text: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objectsOf(source, file) }) }];
}

function objectsOf(value: unknown, argument: string): readonly unknown[] {
  if (Array.isArray(value)) return value.flatMap((one) => objectsOf(one, argument));
  if (!isRecord(value))
    throw new TypeError(
      `Cannot read ${argument} of expectPull: expected a chart, a list of objects and charts, or the files of renderTree, got ${value === null ? 'null' : typeof value}`,
    );
  return typeof value['toJson'] === 'function' ? [value['toJson']()].flat() : [value];
}

function findNamed(store: ObjectStore, text: string, namespace: string | undefined) {
  const asked = parsePodName(text);
  assert.ok(
    asked !== undefined,
    `"${text}" is not a pod: expected a name, or a kind and a name as in deploy/web`,
  );
  const found = WORKLOAD_KINDS.filter(({ kind }) => !text.includes('/') || kind === asked.kind)
    .flatMap((kind) => store.list(kind, namespace))
    .filter(({ metadata }) => metadata.name === asked.name)
    .map(pullBy);
  const [only] = found;
  const names = found.map(({ namespace: own, pod }) => `${pod.kind}/${own}/${pod.name}`).join(', ');
  assert.ok(only !== undefined, `no pod or workload is named "${text}"`);
  assert.equal(found.length, 1, `"${text}" is ambiguous: ${names}`);
  return only;
}

function expectedPull(image: string, explanation: Explanation, at?: string): ExpectedPull {
  const judge = (expect: Expectation['expect']): void => {
    const failure = judgeExpectation({ at, expect }, explanation);
    if (failure !== undefined) assert.fail(`${image}: ${failure}`);
  };
  return {
    with: (secret) => judge({ secret }),
    withKey: (key) => judge({ key }),
    anonymously: () => judge('anonymous'),
    at: (place) => expectedPull(image, explanation, place),
  };
}
