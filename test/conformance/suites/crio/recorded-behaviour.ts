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
import {
  oracleLookup,
  oracleOffers,
  oracleSources,
} from '../../../credential-provider/support/crio-oracle.ts';
import {
  fileNameOf,
  globalEntries,
  type Input,
  imageOf,
  isAnswered,
  isPlain,
  namespaceOf,
  tokenIsUsable,
} from '../../../credential-provider/support/recorded-input.ts';
import {
  type Auths,
  authsIn,
  bytesOf,
  lookups,
  type Observed,
  observe,
} from '../../../credential-provider/support/recorded-run.ts';
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

export const suite: ConformanceSuite<Input, Observed> = {
  cases(document) {
    const { cases } = document as { cases: readonly Case[] };
    const modes = ['down', 'garbage', '429once', 'hang', 'slow', 'reset'];
    const unknown = cases.find(({ input }) => typeof input.api === 'string' && !modes.includes(input.api));
    if (unknown !== undefined) throw new Error(`${unknown.id}: unknown API behaviour "${unknown.input.api}"`);
    return cases.map((one) => ({ name: one.id, input: one.input, expected: expectedOf(one) }));
  },
  answer: (input) => observe(input, readingOf(input).sources),
  accepts: (actual, expected) =>
    Object.entries(expected).every(
      ([field, wanted]) =>
        wanted === undefined ||
        inspect(wanted, { depth: 5 }) === inspect(actual[field as keyof Observed], { depth: 5 }),
    ),
  mutation: {
    file: 'runtime/credential-provider/auth-file.ts',
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

function expectedOf({ input, peer, peerDefect = false, better }: Case): Observed {
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

/** The namespace's secrets cannot be read, for a reason other than a denied permission. */
function isUnread(input: Input, { sources }: Reading, { log }: Peer): boolean {
  const isDenied = [403, 404].includes(Number(input.api));
  const isElsewhere = log.some((line) => line.includes('connect: connection refused'));
  return sources.length > 0 && tokenIsUsable(input) && (isElsewhere || !isAnswered(input)) && !isDenied;
}

function expectation(input: Input, peer: Peer, judged: Judged): Observed {
  const { reading, writes, exitCode, isMarked } = judged;
  // Recorded files name no writer, so no cleanup deletes them.
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
  credentials: Observed['credentials'],
): string | undefined {
  if (!writes || isMarked || !isPlain(input) || !isRight(peer, credentials)) return undefined;
  const text = peer.authFiles[peer.authFileName ?? '']?.text;
  if (text === undefined) return undefined;
  const recorded = JSON.parse(text) as { readonly auths: Auths };
  const { auths } = recorded;
  const needed = Object.keys(auths).filter((key) => isNeeded(key, auths, reading));
  return bytesOf({ ...recorded, auths: Object.fromEntries(needed.map((key) => [key, auths[key]])) });
}

/** Whether CRI-O, without the entry, would find no credential or a different one at one of the pull sources. */
function isNeeded(key: string, auths: Auths, { sources }: Reading): boolean {
  const without = Object.fromEntries(Object.entries(auths).filter(([name]) => name !== key));
  return sources.some((source) => oracleLookup(auths, source) !== oracleLookup(without, source));
}

function wantedCredentials(
  input: Input,
  { sources, offers }: Reading,
  writes: boolean,
): Observed['credentials'] {
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

/** Whether CRI-O would find the right credentials in the recorded file: only then are its bytes expected. */
function isRight({ auths }: Peer, credentials: Observed['credentials']): boolean {
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
