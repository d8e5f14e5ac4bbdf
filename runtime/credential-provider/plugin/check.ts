/**
 * `--check`: tests the requirements of a run without a pod: request, mirror configuration, folder of auth files, address and CA
 * of the API server, and one request without namespace and credential. Writes nothing.
 */
import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { CommandIo } from '../../cli/command.ts';
import { describeError, PullwrightError, UsageError } from '../../core/errors.ts';
import { redact, reveal } from '../../core/redacted.ts';
import { jsonText } from '../../core/text.ts';
import { fileError } from '../../node/atomic-file.ts';
import type { ParsedArguments, ProviderOptions } from '../provider-flags.ts';
import type { ApiAnswer, ApiGet } from './api-server.ts';
import { readConfFiles, registriesFor } from './conf-files.ts';
import { answerPull, type NodeView, type PullAnswer } from './decide.ts';
import { collectingLog } from './journal.ts';
import { MOST_REQUEST_BYTES, parseRequest, requestTooLarge } from './request.ts';
import { authFilePath, nodeView } from './run.ts';

/** What `--check --output json` prints. */
export type CheckReport = Awaited<ReturnType<typeof checked>>;

/** Permitted for every client; any response proves that the server works. */
const PATH = '/version';

/** Returns 0 when a run would reach the Secrets of a namespace. */
export async function checkNode({ options, output }: ParsedArguments, io: CommandIo): Promise<0 | 1> {
  const report = await checked(options, io).catch((error: unknown) => ({
    ok: false,
    message: describeError(error),
  }));
  io.stdout.write(output === 'json' ? `${JSON.stringify(report)}\n` : `${report.message}\n`);
  return report.ok ? 0 : 1;
}

/** `message`: for a person, what was found, or what is wrong and what to do. */
async function checked(options: ProviderOptions, io: CommandIo) {
  const log = collectingLog(false, ({ text }) => io.stderr.write(`${text}\n`));
  const budget = AbortSignal.any([io.signal, AbortSignal.timeout(options.budgetMs)]);
  const view = nodeView(options, { env: io.env, signal: budget }, log);
  parseRequest(await view.stdin());
  registriesFor(readConfFiles(options, io.env['CONTAINERS_REGISTRIES_CONF_OVERRIDE']));
  writable(options.authDir);
  const get = await view.connect(redact(''));
  const { code } = await get(PATH);
  if (code >= 500)
    throw new PullwrightError(`the API server returned ${code} for GET ${PATH}`, {
      code: 'ApiError',
      hint: 'Check the API server; the check is retried',
    });
  return { ok: true, message: `API server found, verified and responding (${code})` };
}

/** Whether the folder, or its nearest existing parent, is writable: the first run that writes creates it. */
function writable(folder: string): void {
  let there = folder;
  while (!existsSync(there) && there !== dirname(there)) there = dirname(there);
  try {
    accessSync(there, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw fileError('write', folder, error);
  }
}

// `--dry-run`: pull sources, chosen credentials, and the redacted auth file of a request.

/** Contents of `dryRun` in a request, which replace the node's files and the API server. */
interface Stand {
  readonly registriesConf?: string;
  /** The node's own auth file, as an object. */
  readonly globalAuth?: unknown;
  /** Secrets of the namespace, as in the API. */
  readonly secrets?: readonly Named[];
  /** Names in the pod's and the ServiceAccount's imagePullSecrets. */
  readonly podSecrets?: readonly string[];
  readonly serviceAccountSecrets?: readonly string[];
}

interface Named {
  readonly type?: string;
  readonly metadata?: { readonly name?: string };
}

/** Prints the decision. Writes no file. */
export async function dryRun({ options, output }: ParsedArguments, io: CommandIo): Promise<number> {
  const log = collectingLog(options.verbose, ({ text }) => io.stderr.write(`${text}\n`));
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of io.stdin) {
    chunks.push(Buffer.from(chunk));
    size += chunk.length;
    if (size > MOST_REQUEST_BYTES) throw requestTooLarge();
  }
  const text = Buffer.concat(chunks).toString('utf8');
  const real = nodeView(options, { env: io.env, signal: io.signal }, log);
  const decision = await answerPull(
    standIn(text, { ...real, stdin: () => Promise.resolve(text) }, options),
    options,
    log,
  );
  const report = reportOf(decision, options);
  io.stdout.write(output === 'json' ? jsonText(report) : textOf(report));
  if (decision.failure === undefined) return 0;
  throw decision.failure;
}

function standIn(text: string, real: NodeView, options: ProviderOptions): NodeView {
  const stand = standOf(text);
  const { registriesConf, globalAuth, secrets } = stand;
  return {
    stdin: real.stdin,
    confFiles: () =>
      registriesConf === undefined
        ? readConfFiles(options, undefined)
        : [{ path: 'dryRun.registriesConf', text: registriesConf }],
    globalAuth: () => (globalAuth === undefined ? real.globalAuth() : redact(JSON.stringify(globalAuth))),
    connect: (token) =>
      secrets === undefined ? real.connect(token) : Promise.resolve(paperClient(stand, secrets)),
  };
}

function standOf(text: string): Stand {
  try {
    const request = JSON.parse(text) as { readonly dryRun?: Stand } | null;
    return request?.dryRun ?? {};
  } catch {
    throw new UsageError('Cannot read the request: stdin is not JSON, expected a CredentialProviderRequest');
  }
}

/** Responds like the API server to the provider's requests. */
function paperClient(stand: Stand, secrets: readonly Named[]): ApiGet {
  const references = (names: readonly string[] = []) => names.map((name) => ({ name }));
  return (path) => {
    // A namespace may be called "pods".
    const [, resource, named] = /^\/api\/v1\/namespaces\/[^/]+\/(\w+)(?:\/([^/?]+))?/.exec(path) ?? [];
    if (resource === 'pods') return answer({ spec: { imagePullSecrets: references(stand.podSecrets) } });
    if (resource === 'serviceaccounts')
      return answer({ imagePullSecrets: references(stand.serviceAccountSecrets) });
    if (named === undefined) return answer({ items: secrets.filter(({ type }) => isListed(path, type)) });
    const secret = secrets.find(({ metadata }) => metadata?.name === named);
    return secret === undefined
      ? Promise.resolve({ code: 404, message: `secrets "${named}" not found` })
      : answer(secret);
  };
}

function isListed(path: string, type = 'Opaque'): boolean {
  const selector = decodeURIComponent(path.split('fieldSelector=')[1] ?? '');
  return selector
    .split(',')
    .every((term) => (term.includes('!=') ? term !== `type!=${type}` : term === `type=${type}`));
}

function answer(body: unknown): Promise<ApiAnswer> {
  return Promise.resolve({ code: 200, body });
}

/** What `--dry-run --output json` prints. */
function reportOf({ request, puller, sources, choice, file }: PullAnswer, options: ProviderOptions) {
  const secretOf = new Map(choice?.entries.map(({ key, secret }) => [key, secret]));
  const isWritten = request !== undefined && puller !== undefined && file !== undefined;
  return {
    image: request?.image ?? '',
    namespace: puller?.namespace,
    sources: sources.map(({ repository, kind }) => {
      const key = choice?.keyBySource.get(repository);
      return key === undefined
        ? { repository, kind }
        : { repository, kind, key, secret: secretOf.get(key) ?? '' };
    }),
    file: isWritten ? authFilePath(options.authDir, puller.namespace, request.image) : undefined,
    /** The auth file with every credential as `[redacted]`. */
    content: file === undefined ? undefined : JSON.parse(reveal(file.text), redacted),
  };
}

/** Keeps keys and field names, removes every string value. */
function redacted(_: string, value: unknown): unknown {
  return typeof value === 'string' ? '[redacted]' : value;
}

function textOf({ image, namespace, sources, file, content }: ReturnType<typeof reportOf>): string {
  const width = Math.max(0, ...sources.map(({ repository }) => repository.length));
  const lines = sources.map(
    ({ repository, kind, key, secret }) =>
      `  ${kind.padEnd(8)} ${repository.padEnd(width)}  ${key === undefined ? '(no credential of the namespace)' : `${key} of secret ${secret}`}`,
  );
  return [
    `image      ${image}`,
    `namespace  ${namespace ?? '(none)'}`,
    'sources',
    ...(lines.length === 0 ? ['  (no mirror applies)'] : lines),
    `file       ${file ?? '(none)'}`,
    ...(content === undefined ? [] : [JSON.stringify(content, null, 2)]),
    '',
  ].join('\n');
}
