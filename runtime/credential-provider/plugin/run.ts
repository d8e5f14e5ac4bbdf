/** The shell around one run on a node: real files, real API server, stdin, stderr and journal. */
import { existsSync, readFileSync, readSync } from 'node:fs';
import { readConfFiles } from '../../host/conf-files.ts';
import { AUTH_FILE_LIFE_MS, IN_USE_LIFE_MS, NOTES, removeStaleAuthFiles } from '../../node/janitor.ts';
import { errnoOf, PullwrightError } from '../../rules/errors.ts';
import { redact } from '../../rules/redacted.ts';
import { type ApiClient, apiClient, httpClientFor } from './api-client.ts';
import { type ApiServer, findApiServer } from './api-server.ts';
import type { NodeView } from './decide.ts';
import { IDENTIFIER, journalEntry, sendDatagrams } from './journal.ts';
import { type CollectedLog, collectingLog, type Log } from './log.ts';
import type { ProviderOptions } from './options.ts';
import { type ProvideResult, provide } from './provide.ts';
import { MOST_REQUEST_BYTES, requestTooLarge } from './request.ts';

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
  // Loaded for a node where something fails.
  if (failure !== undefined || existsSync(`${options.authDir}/${NOTES}`))
    (await import('./failure-note.ts')).noteOutcome(options.authDir, log.subject, failure);
  // Takes the connection down, which would keep the process alive.
  budget.abort();
  await tellJournal(options.journalSocket, log);
  return result;
}

/** Files that no pull has taken, of whichever pod: the image was there already, or the pod went. */
export function sweepAuthFiles(folder: string): void {
  try {
    removeStaleAuthFiles(folder, AUTH_FILE_LIFE_MS, Date.now(), IN_USE_LIFE_MS);
  } catch {
    // The next run looks again.
  }
}

async function tellJournal(socket: string, { lines, subject }: CollectedLog): Promise<void> {
  if (!existsSync(socket)) return;
  const entries = lines.map((line) => journalEntry(line, subject, process.pid));
  if (sendDatagrams(socket, entries) !== undefined) return;
  // Without datagrams, as a service's stdout would go there: one priority a line, and no fields.
  const stream = `${socket.slice(0, socket.lastIndexOf('/'))}/stdout`;
  if (existsSync(stream))
    await (await import('./journal-stream.ts')).sendToJournal(stream, IDENTIFIER, lines);
}

/** A request is some kilobytes: an image, a token, and annotations of a ServiceAccount. */
const CHUNK_BYTES = 64 * 1024;

/** The node as it is. */
export function nodeView(
  options: ProviderOptions,
  context: Pick<RunContext, 'env' | 'signal'>,
  log: Log,
): NodeView {
  return {
    stdin: readStdin,
    confFiles: () => readConfFiles(options, context.env['CONTAINERS_REGISTRIES_CONF_OVERRIDE']),
    now: Date.now,
    globalAuth: () => textIfThere(options.globalAuthFile),
    connect: async (token) => {
      const server = await findApiServer(options);
      log.info(`Using API server host: ${server.url.slice('https://'.length)}`);
      const open = (one: ApiServer): ApiClient =>
        apiClient(one, token, context.signal, httpClientFor(one, context.env));
      return withOtherAuthorities(open(server), async (error) =>
        (await import('./other-authority.ts')).otherClients(error, { options, server, open, log }),
      );
    },
  };
}

/** Where the first CA of the node is not the one of the server, what `others` has for it is asked in turn. */
function withOtherAuthorities(
  first: ApiClient,
  others: (error: unknown) => Promise<readonly ApiClient[]>,
): ApiClient {
  let client = first;
  return {
    async get(path) {
      try {
        return await client.get(path);
      } catch (error) {
        for (const other of client === first ? await others(error) : []) {
          const answer = await other.get(path).catch(() => undefined);
          if (answer === undefined) continue;
          client = other;
          return answer;
        }
        throw error;
      }
    },
  };
}

/**
 * All of stdin up to {@link MOST_REQUEST_BYTES}. Nothing else runs meanwhile, so that no timer could end what never ends. A pipe that is set
 * not to block is asked again.
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
    {
      code: 'RequestUnreadable',
      disposition: 'terminal',
      hint: 'The kubelet writes a CredentialProviderRequest on stdin',
    },
  );
}

function textIfThere(path: string): ReturnType<NodeView['globalAuth']> {
  try {
    return redact(readFileSync(path, 'utf8'));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
