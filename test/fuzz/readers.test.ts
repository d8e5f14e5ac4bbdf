// deadline: 120 s
/**
 * Whatever takes the texts and bytes of others apart is fuzzed: a reader that no parser of the list comes to is named here, with the
 * reason, or this test is red. Readers are found in the sources; what is come to is counted while the good texts are parsed.
 */
import assert from 'node:assert/strict';
import { Session } from 'node:inspector/promises';
import { suite } from '../support/suite.ts';
import { readersIn, readersInSources } from './readers.ts';

const test = suite('readers');
const ROOT = new URL('../..', import.meta.url).href;

/** Readers that are not fuzzed, by the reason. */
const NOT_FUZZED: Readonly<Record<string, readonly string[]>> = {
  'what it is given was made by us, or is a constant': [
    'runtime/commands/reconcile/report.ts reportOf',
    'charts/synth.ts printReport',
    'charts/synth.ts reportCheck',
    'runtime/engine/store.ts impliedFields',
    'runtime/pull-secret-adapter/names.ts clusterLabels',
    'runtime/core/mirrors/registries-conf.ts mismatch',
    'runtime/diagnose/checks/status.ts statusProblems',
    'runtime/core/kubernetes/account-bounds.ts celOf',
  ],
  'it passes the value on as it is, or sums up its bytes': [
    'runtime/credential-provider/installer/source.ts digestOf',
    'runtime/core/docker-config/encode.ts unusableDigest',
    'runtime/pull-secret-adapter/job/secret-manager.ts crc32c',
  ],
  'the text is the path of a file or folder, which whoever runs the program chooses; what is read is fuzzed':
    [
      'charts/output.ts compareTree',
      'charts/output.ts headerOf',
      'charts/output.ts writeTree',
      'runtime/commands/reconcile/live.ts openKubeconfig',
      'runtime/commands/reconcile/scopes.ts hostedPairs',
      'charts/synth.ts loadFleet',
      'runtime/credential-provider/plugin/conf-files.ts readConfFiles',
      'runtime/kube/kubeconfig.ts loadConnection',
      'runtime/node/watch.ts oldestAuthFileMs',
      'runtime/node/watch.ts removeStaleAuthFiles',
      'runtime/node/state.ts takeSingle',
      'runtime/kube/pod-connection.ts podConnection',
      'runtime/kube/pod-connection.ts readCredentialFile',
    ],
  'it opens a connection, and what comes over it is fuzzed': [
    'runtime/node/systemd.ts connectBus',
    'runtime/http/http-error.ts httpErrorOf',
    'runtime/pull-secret-adapter/job/management-secret.ts writeManagementSecret',
  ],
  'a flag or variable of whoever runs the program': [
    'runtime/core/kubernetes/read-spec.ts readOptions',
    'runtime/cli/flags.ts portNumber',
    'runtime/cli/flags.ts wholeNumber',
    'runtime/cli/flags.ts wholeSeconds',
    'runtime/http/proxy.ts proxyFor',
  ],
  'one call of a reader that is fuzzed': ['charts/fleet.ts readFleet'],
};

const readers = readersInSources();
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
const { PARSERS } = await import('./parsers.ts');

/** Functions that were entered since it was asked last, in the form of {@link readersInSources}. */
async function entered(): Promise<ReadonlySet<string>> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  return new Set(
    result.flatMap(({ url, functions }) =>
      functions
        .filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
        .map(({ functionName }) => `${url.replace(ROOT, '')} ${functionName}`),
    ),
  );
}

await entered();
for (const parser of PARSERS)
  for (const text of parser.corpus)
    try {
      await parser.run(text);
    } catch {
      // Some good texts are good for one of several readers.
    }
const reached = await entered();
await session.post('Profiler.stopPreciseCoverage');
session.disconnect();

test('every reader of the sources is fuzzed, or stands in the list with its reason', () => {
  assert.ok(readers.length > 200, `${readers.length} were found`);
  const known = Object.values(NOT_FUZZED).flat();
  assert.deepEqual(
    readers.filter((one) => !reached.has(one) && !known.includes(one)),
    [],
    'add it to a parser in test/fuzz, or to the list above with the reason',
  );
});

test('nothing stands in the list that is fuzzed, or that is not there', () => {
  const stale = Object.values(NOT_FUZZED).flat();
  assert.deepEqual(
    stale.filter((one) => reached.has(one) || !readers.includes(one)),
    [],
  );
});

test('readers are found by what they are given and do', () => {
  const found = (text: string): readonly string[] => readersIn(text);
  assert.deepEqual(found('export function a(text: string): string[] { return text.split(","); }'), ['a']);
  assert.deepEqual(found('export function a(value: unknown): number { return 1; }'), ['a']);
  assert.deepEqual(found('export async function a(of: Redacted<string> | undefined): Promise<void> {}'), [
    'a',
  ]);
  assert.deepEqual(found('export function a(n: number, bytes: Uint8Array,): void {}'), ['a']);
  assert.deepEqual(
    found(
      'export function a(text: string): unknown { return b(text); }\nfunction b(text: string): unknown { return JSON.parse(text); }',
    ),
    ['a'],
    'by way of another of its file',
  );
  assert.deepEqual(
    found('function a(text: string): string[] { return text.split(","); }'),
    [],
    'it is not exported',
  );
  assert.deepEqual(
    found('export function a(text: string): string { return text; }'),
    [],
    'it takes nothing apart',
  );
  assert.deepEqual(found('export function a(error: unknown): string { return "x"; }'), [], 'it was caught');
  assert.deepEqual(found('export function a(count: number): string[] { return "a b".split(" "); }'), []);
});

test.run();
