/**
 * The provider as a black box: files, request, secrets and API behaviour in; exit code, response, auth file, requests out.
 *
 * What is expected of an unmarked case is what was recorded, but for what we do otherwise everywhere (below); of a case marked
 * as a defect, what an independent reading of CRI-O says (crio-oracle.ts). Both are held against that reading: for every place
 * the image is pulled from, the written file must give CRI-O the credential that the namespace, else the node, has for it.
 *
 * Everywhere: the response is never cached and holds the entry that keeps the image private when a file was written, or when the
 * secrets could not be read for another reason than a refusal; no file is written when the namespace adds nothing, and one of
 * another writer is left; of the node's entries the file holds those that the image needs; the folder is for root alone.
 */
import { inspect } from 'node:util';
import { startApi } from '../../../credential-provider/support/api-double.ts';
import {
  oracleLookup,
  oracleOffers,
  oracleSources,
} from '../../../credential-provider/support/crio-oracle.ts';
import { authFiles, makeNode, runOn } from '../../../credential-provider/support/node-double.ts';
import {
  fileNameOf,
  filesOf,
  globalEntries,
  type Input,
  imageOf,
  isAnswered,
  isPlain,
  namespaceOf,
  tokenIsUsable,
} from '../../../credential-provider/support/recorded-input.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Peer {
  readonly exitCode: number;
  readonly authFileName: string | null;
  readonly authFiles: Readonly<Record<string, { readonly mode: string; readonly text: string }>>;
  readonly auths: Readonly<Record<string, { readonly auth?: string }>> | null;
  readonly log: readonly string[];
  readonly apiRequests: readonly { readonly path: string }[];
}

interface Case {
  readonly id: string;
  readonly input: Input;
  readonly peer: Peer;
  readonly peerDefect?: boolean;
  readonly better?: string;
}

interface Expected {
  readonly exitCode: number;
  /** Per pull source the `user:password` that CRI-O sends, `(none)` for none. */
  readonly credentials: Readonly<Record<string, string>>;
  readonly fileName: string | null;
  /** Bytes, where the recorded ones are right. */
  readonly fileText?: string | undefined;
  readonly response: string;
  readonly lastLogLine: string;
  readonly firstRequest: string;
}

export const suite: ConformanceSuite<Input, Expected> = {
  cases(document) {
    const { cases } = document as { cases: readonly Case[] };
    const modes = ['down', 'garbage', '429once', 'hang', 'slow', 'reset'];
    const unknown = cases.find(({ input }) => typeof input.api === 'string' && !modes.includes(input.api));
    if (unknown !== undefined) throw new Error(`${unknown.id}: unknown API behaviour "${unknown.input.api}"`);
    return cases.map((one) => ({ name: one.id, input: one.input, expected: expectedOf(one) }));
  },
  answer,
  accepts: (actual, expected) =>
    Object.entries(expected).every(
      ([field, wanted]) =>
        wanted === undefined ||
        inspect(wanted, { depth: 5 }) === inspect(actual[field as keyof Expected], { depth: 5 }),
    ),
  mutation: {
    file: 'runtime/rules/mirrors/pull-sources.ts',
    replace: 'repository: mirror.location + rest',
    by: 'repository: mirror.location',
  },
};

interface Reading {
  readonly sources: readonly string[];
  readonly offers: ReturnType<typeof oracleOffers>;
  /** The namespace has something for a source. */
  readonly adds: boolean;
}

function readingOf(input: Input): Reading {
  const image = imageOf(input);
  let sources: readonly string[] = [];
  try {
    const confs = [
      input.registriesConf ?? '',
      ...Object.keys(input.dropins)
        .sort()
        .map((name) => input.dropins[name] ?? ''),
    ];
    sources = image === '' ? [] : oracleSources(confs, image);
  } catch {
    // Text that is no TOML has no sources.
  }
  const offers = oracleOffers(input.secrets);
  return { sources, offers, adds: sources.some((source) => oracleLookup(offers, source) !== undefined) };
}

function expectedOf({ input, peer, peerDefect = false, better }: Case): Expected {
  if (peerDefect && better === undefined) throw new Error('a defect without "better"');
  const reading = readingOf(input);
  const isWritten = isAnswered(input) && reading.adds;
  if (isUnread(input, reading, peer))
    return expectation(input, peer, { reading, writes: false, exitCode: 0, isMarked: peerDefect });
  if (peerDefect) {
    const writes = isWritten && tokenIsUsable(input);
    return expectation(input, peer, {
      reading,
      writes,
      exitCode: betterExitCode(input, reading, writes),
      isMarked: true,
    });
  }
  const { exitCode } = peer;
  return expectation(input, peer, {
    reading,
    writes: isWritten && exitCode === 0,
    exitCode,
    isMarked: false,
  });
}

interface Judged {
  readonly reading: Reading;
  readonly writes: boolean;
  readonly exitCode: number;
  readonly isMarked: boolean;
}

/** The namespace's secrets cannot be read, and not because somebody refuses it. */
function isUnread(input: Input, { sources }: Reading, { log }: Peer): boolean {
  const isDenied = [403, 404].includes(Number(input.api));
  const isElsewhere = log.some((line) => line.includes('connect: connection refused'));
  return sources.length > 0 && tokenIsUsable(input) && (isElsewhere || !isAnswered(input)) && !isDenied;
}

function expectation(input: Input, peer: Peer, judged: Judged): Expected {
  const { reading, writes, exitCode, isMarked } = judged;
  // Recorded files name no writer, so nobody takes them away.
  const isLeft = !writes && input.existingAuthFile !== null;
  const credentials = isLeft
    ? lookups(authsIn(input.existingAuthFile ?? ''), reading.sources)
    : wantedCredentials(input, reading, writes);
  return {
    exitCode,
    credentials,
    fileName: writes || isLeft ? fileNameOf(input) : null,
    fileText: recordedBytes(input, peer, judged, credentials),
    response: responseOf(exitCode, writes || isUnread(input, reading, peer)),
    lastLogLine: exitCode === 0 ? 'fine' : 'Failed to run credential provider',
    firstRequest: firstRequest(input, peer, isMarked && reading.sources.length > 0),
  };
}

function responseOf(exitCode: number, keepsPrivate: boolean): string {
  if (exitCode !== 0) return 'none';
  return keepsPrivate ? 'private' : 'empty';
}

/** The recorded bytes, where they are right. */
function recordedBytes(
  input: Input,
  peer: Peer,
  { reading, writes, isMarked }: Judged,
  credentials: Expected['credentials'],
): string | undefined {
  if (!writes || isMarked || !isPlain(input) || !isRight(peer, credentials)) return undefined;
  const text = peer.authFiles[peer.authFileName ?? '']?.text;
  if (text === undefined) return undefined;
  const recorded = JSON.parse(text) as { readonly auths: Auths };
  const { auths } = recorded;
  const needed = Object.keys(auths).filter((key) => isNeeded(key, auths, reading));
  return bytesOf({ ...recorded, auths: Object.fromEntries(needed.map((key) => [key, auths[key]])) });
}

/** Whether CRI-O would miss the entry at one of the places, or find another there. */
function isNeeded(key: string, auths: Auths, { sources }: Reading): boolean {
  const without = Object.fromEntries(Object.entries(auths).filter(([name]) => name !== key));
  return sources.some((source) => oracleLookup(auths, source) !== oracleLookup(without, source));
}

/** As Go writes such a file. */
function bytesOf(file: unknown): string {
  const text = JSON.stringify(file, null, '\t');
  return `${text.replace(/[<>&]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`)}\n`;
}

function wantedCredentials(
  input: Input,
  { sources, offers }: Reading,
  writes: boolean,
): Expected['credentials'] {
  if (!writes) return Object.fromEntries(sources.map((source) => [source, '(none)']));
  const node = globalEntries(input);
  return Object.fromEntries(
    sources.map((source) => [source, oracleLookup(offers, source) ?? oracleLookup(node, source) ?? '(none)']),
  );
}

function firstRequest(input: Input, peer: Peer, decidedByReading: boolean): string {
  if (!tokenIsUsable(input) || input.api === 'down') return '(none)';
  const recorded = peer.apiRequests[0]?.path ?? '(none)';
  const list = `/api/v1/namespaces/${String(namespaceOf(input))}/secrets?fieldSelector=type%3Dkubernetes.io%2Fdockerconfigjson`;
  return decidedByReading ? list : recorded;
}

/** Whether CRI-O would find in the recorded file what it should: only then are its bytes the wanted ones. */
function isRight({ auths }: Peer, credentials: Expected['credentials']): boolean {
  return Object.entries(credentials).every(
    ([source, wanted]) => (oracleLookup(auths ?? {}, source) ?? '(none)') === wanted,
  );
}

/** Fails where the input is wrong, or where the secrets cannot be read and the node has nothing for the image either. */
function betterExitCode(input: Input, { sources }: Reading, writes: boolean): number {
  if (writes) return 0;
  const hasToken = /"serviceAccountToken"\s*:\s*"[^"]/i.test(input.stdin);
  if (!hasToken) return 0;
  if (!tokenIsUsable(input)) return 1;
  const node = globalEntries(input);
  return isAnswered(input) || sources.some((source) => oracleLookup(node, source) !== undefined) ? 0 : 1;
}

async function answer(input: Input): Promise<Expected> {
  const api = await startApi(
    { secrets: input.secrets, mode: input.api, ignoresSelector: input.apiIgnoresFieldSelector },
    { host: (input.apiserverUrlEnv ?? '').includes('::1') ? '::1' : '127.0.0.1' },
  );
  if (input.api === 'down') await api.close();
  const node = makeNode({ ...filesOf(input, api.port), ca: api.ca });
  try {
    const override = input.env['CONTAINERS_REGISTRIES_CONF_OVERRIDE'];
    const isSlow = input.api === 'hang' || input.api === 'slow';
    const options = { budgetMs: isSlow ? 600 : 5000 };
    const ran = await runOn(node, input.stdin, override === undefined ? { options } : { override, options });
    const paths = api.requests.map(({ path }) => path);
    return seen(input, { ...ran, files: authFiles(node), paths, name: fileNameOf(input) });
  } finally {
    node.remove();
    if (input.api !== 'down') await api.close();
  }
}

interface Seen {
  readonly exitCode: number;
  readonly stdout: string;
  readonly log: readonly string[];
  readonly files: ReturnType<typeof authFiles>;
  readonly paths: readonly string[];
  readonly name: string;
}

function seen(input: Input, { exitCode, stdout, log, files, paths, name }: Seen): Expected {
  const file = files[name];
  refuseCarelessness(files, name, log);
  return {
    exitCode,
    credentials: lookups(authsIn(file?.text ?? '{}'), readingOf(input).sources),
    fileName: file === undefined ? null : name,
    fileText: file === undefined ? undefined : withoutRecord(file.text),
    response: responseKind(stdout, imageOf(input)),
    lastLogLine: exitCode === 0 ? 'fine' : (log.at(-1)?.split(':')[0] ?? ''),
    firstRequest: paths[0] ?? '(none)',
  };
}

/** The bytes that would be there without the record; other bytes than these are kept, so that they differ. */
function withoutRecord(text: string): string {
  try {
    const { 'pullwright.dev/record': record, ...rest } = JSON.parse(text) as Record<string, unknown>;
    return record !== undefined && bytesOf({ ...rest, 'pullwright.dev/record': record }) === text
      ? bytesOf(rest)
      : text;
  } catch {
    return text;
  }
}

type Auths = Parameters<typeof oracleLookup>[0];

function authsIn(text: string): Auths {
  try {
    return (JSON.parse(text) as { auths?: Auths }).auths ?? {};
  } catch {
    return {};
  }
}

function lookups(auths: Auths, sources: readonly string[]): Expected['credentials'] {
  return Object.fromEntries(sources.map((source) => [source, oracleLookup(auths, source) ?? '(none)']));
}

/** What no case may ever show. */
function refuseCarelessness(files: Seen['files'], name: string, log: readonly string[]): void {
  const other = Object.keys(files).filter((one) => one !== name);
  if (other.length > 0) throw new Error(`left behind: ${other.join(', ')}`);
  const mode = files[name]?.mode ?? 0o600;
  if (mode !== 0o600) throw new Error(`mode ${mode.toString(8)}`);
  if (log.length > 20) throw new Error(`${log.length} log lines`);
  if (files[name]?.text.includes('"Og=="') === true) throw new Error('an empty credential');
}

function responseKind(stdout: string, image: string): string {
  if (stdout === '') return 'none';
  const { auth, ...rest } = JSON.parse(stdout) as Record<string, unknown>;
  const fixed = {
    kind: 'CredentialProviderResponse',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    cacheKeyType: 'Image',
    cacheDuration: '0s',
  };
  if (JSON.stringify(rest) !== JSON.stringify(fixed)) return stdout;
  if (auth === undefined) return 'empty';
  return JSON.stringify(auth) === JSON.stringify({ [image]: { username: '', password: '' } })
    ? 'private'
    : stdout;
}
