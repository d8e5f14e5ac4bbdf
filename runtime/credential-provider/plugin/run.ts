/** I/O of one run on a node: files, API server, stdin, stderr and journal. */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { describeError, errnoOf, PullwrightError } from '../../core/errors.ts';
import { type Redacted, redact, reveal } from '../../core/redacted.ts';
import { trimEndOf } from '../../core/text.ts';
import { fileError, replaceFile } from '../../node/atomic-file.ts';
import { AUTH_FILE_LIFE_MS, NOTES, removeStaleAuthFiles } from '../../node/watch.ts';
import { writerOf } from '../auth-file.ts';
import {
  configBeside,
  type ParsedArguments,
  type ProviderOptions,
  parseArguments,
} from '../provider-flags.ts';
import { apiClient, findApiServer, httpClientFor } from './api-server.ts';
import { readConfFiles, sha256Hex } from './conf-files.ts';
import { answerPull, fileWriterOf, type NodeView, type PullAnswer } from './decide.ts';
import { collectingLog, journalEntry, type Log, noteOutcome, sendDatagrams } from './journal.ts';
import { EMPTY_RESPONSE, MOST_REQUEST_BYTES, requestTooLarge, responseText } from './request.ts';

// One run for the kubelet: decide, write or remove the auth file, respond.

export interface ProvideResult {
  /** Response, or empty on failure. */
  readonly stdout: string;
  readonly exitCode: 0 | 1;
}

/** Path where CRI-O looks for the auth file of an image in a namespace. */
export function authFilePath(dir: string, namespace: string, image: string): string {
  if (!dir.startsWith('/')) throw noPath(`provided "${dir}" directory is not an absolute path`);
  if (namespace === '') throw noPath('no namespace provided');
  if (image === '') throw noPath('no image ref provided');
  const hash = sha256Hex(image);
  return `${trimEndOf(dir, '/')}/${namespace}-${hash}.json`;
}

function noPath(message: string): PullwrightError {
  return new PullwrightError(message, { code: 'AuthFilePath' });
}

/** Never rejects: logs a failure and exits with 1, after which the kubelet continues without our credentials. */
export async function provide(view: NodeView, options: ProviderOptions, log: Log): Promise<ProvideResult> {
  log.info('Running credential provider');
  try {
    return act(await answerPull(view, options, log), options, log);
  } catch (error) {
    log.error(`Failed to run credential provider: ${describeError(error)}`);
    return { stdout: '', exitCode: 1 };
  }
}

/** Codes of failures by which the API server denies this pod: no permission, or no such namespace. */
const DENIED: readonly string[] = ['SecretsForbidden', 'SecretsNotFound'];

function act(decision: PullAnswer, options: ProviderOptions, log: Log): ProvideResult {
  const { request, puller, file, failure, covered } = decision;
  const { authDir, keepImagesPrivate } = options;
  if (request === undefined) return { stdout: EMPTY_RESPONSE, exitCode: 0 };
  const answer = (keepPrivate: boolean): ProvideResult => ({
    stdout: responseText(request, keepPrivate),
    exitCode: 0,
  });
  if (puller === undefined) return answer(false);
  const path = authFilePath(authDir, puller.namespace, request.image);
  if (file !== undefined) {
    writeAuthFile(path, authDir, file.text);
    log.info(`Wrote auth file to ${path} with ${file.entries} number of entries`);
    return answer(keepImagesPrivate);
  }
  if (failure === undefined) {
    removeOwn(path, fileWriterOf(puller));
    log.info(
      `Namespace ${puller.namespace} has no credential for any pull source, will not write any auth file`,
    );
    return answer(keepImagesPrivate && existsSync(path));
  }
  // The Secrets are not readable. A denial is final, because owners revoke access that way. After any other error the pull uses
  // the node's own auth file, and the entry for the exact image permits the restart of a container whose ServiceAccount has
  // pulled the image before. CRI-O uses a file of another account of the namespace for the image whatever the response. Such a
  // pull must not be recorded as one without credentials, which would open the image to every pod on the node.
  const isDenied = failure instanceof PullwrightError && DENIED.includes(failure.code);
  const keepsIdentity = keepImagesPrivate && (!isDenied || existsSync(path));
  if (covered !== true && !keepsIdentity) throw failure;
  log.error(`Using the node's auth file: ${describeError(failure)}`);
  return answer(keepsIdentity);
}

/**
 * Restricts the folder to root, even an existing one, and replaces the file atomically with mode 0600. Does not read it back,
 * because CRI-O may have moved it by then.
 */
function writeAuthFile(path: string, dir: string, text: Redacted<string>): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    if ((statSync(dir).mode & 0o077) !== 0) chmodSync(dir, 0o700);
    const old = lstatSync(path, { throwIfNoEntry: false });
    // replaceFile() rejects links and other non-files.
    if (old !== undefined && !old.isFile()) unlinkSync(path);
    replaceFile(path, new TextEncoder().encode(reveal(text)), {
      mode: 0o600,
      fresh: true,
      durable: 'content',
      verify: false,
    });
  } catch (error) {
    const cause = fileError('write', path, error);
    const { code, hint } = cause;
    throw new PullwrightError(`unable to create auth file: ${cause.message}`, { code, hint, cause });
  }
}

/** Removes a stale file of this account, which CRI-O would use instead of the node's own. */
function removeOwn(path: string, writer: string): void {
  try {
    const text = readFileSync(path, 'utf8');
    if (writerOf(redact(text)) === writer) unlinkSync(path);
  } catch {
    // The file does not exist, or CRI-O has just moved it.
  }
}

/** The options of a run of this executable: its arguments, and the files that hold options. */
export function argumentsOf(args: readonly string[], home: string | undefined): ParsedArguments {
  const read = (path: string): string => readFileSync(path, 'utf8');
  return parseArguments(args, home, read, configBeside(process.execPath));
}

export interface RunContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly writeError: (line: string) => void;
}

/** One run for the kubelet. Never rejects. */
export async function runProvider(options: ProviderOptions, context: RunContext): Promise<ProvideResult> {
  const budget = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const log = collectingLog(options.verbose, ({ text }) => context.writeError(`${text}\n`));
  const signal = AbortSignal.any([budget.signal, context.signal]);
  const node = nodeView(options, { ...context, signal }, log);
  const connect: NodeView['connect'] = (token) => {
    timer = setTimeout(() => budget.abort(), options.budgetMs);
    return node.connect(token);
  };
  const result = await provide({ ...node, connect }, options, log);
  clearTimeout(timer);
  sweepAuthFiles(options.authDir);
  const failure = log.lines.findLast(({ priority }) => priority === 3)?.text;
  // The folder exists only on a node with a failed run.
  if (failure !== undefined || existsSync(`${options.authDir}/${NOTES}`))
    noteOutcome(options.authDir, log.subject, failure);
  // Closes the connection, which would keep the process alive.
  budget.abort();
  if (existsSync(options.journalSocket)) {
    const entries = log.lines.map((line) => journalEntry(line, log.subject, process.pid));
    sendDatagrams(options.journalSocket, entries);
  }
  return result;
}

/** Removes auth files that no pull used, of any pod: the image was present, or the pod was deleted. */
export function sweepAuthFiles(folder: string): void {
  try {
    removeStaleAuthFiles(folder, AUTH_FILE_LIFE_MS, Date.now());
  } catch {
    // The next run retries.
  }
}

/** A request has some kilobytes: an image, a token, and annotations of a ServiceAccount. */
const CHUNK_BYTES = 64 * 1024;

/** The real node. */
export function nodeView(
  options: ProviderOptions,
  context: Pick<RunContext, 'env' | 'signal'>,
  log: Log,
): NodeView {
  return {
    stdin: readStdin,
    confFiles: () => readConfFiles(options, context.env['CONTAINERS_REGISTRIES_CONF_OVERRIDE']),
    globalAuth: () => redact(readFileSync(options.globalAuthFile, 'utf8')),
    connect: async (token) => {
      const server = await findApiServer(options);
      log.info(`Using API server host: ${server.url.slice('https://'.length)}`);
      return apiClient(server, token, context.signal, httpClientFor(server, context.env));
    },
  };
}

/**
 * Reads stdin up to {@link MOST_REQUEST_BYTES}. Blocks, so that no timer can interrupt it. Retries on a non-blocking pipe.
 */
async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let size = 0; size <= MOST_REQUEST_BYTES; ) {
    try {
      const read = readSync(0, chunk);
      if (read === 0) return Buffer.concat(chunks).toString('utf8');
      chunks.push(Buffer.from(chunk.subarray(0, read)));
      size += read;
    } catch (error) {
      if (errnoOf(error) !== 'EAGAIN') throw unreadable(error);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
  throw requestTooLarge();
}

function unreadable(error: unknown): PullwrightError {
  return new PullwrightError(
    `unable to parse credential provider request from stdin: ${errnoOf(error) ?? 'unreadable'}`,
    { code: 'RequestUnreadable', hint: 'The kubelet writes a CredentialProviderRequest on stdin' },
  );
}
