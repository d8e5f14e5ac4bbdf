/** One run for the kubelet: decide, write or remove the auth file, answer. */
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, statSync, unlinkSync } from 'node:fs';
import { replaceFile } from '../../host/atomic-file.ts';
import { fileError } from '../../host/file-errors.ts';
import { sha256Hex } from '../../host/sha256.ts';
import { recordIn } from '../../rules/credential-provider/namespace-auth-file.ts';
import { describeError, PullwrightError } from '../../rules/errors.ts';
import { type Redacted, redact, reveal } from '../../rules/redacted.ts';
import { trimEndOf } from '../../rules/text/trim.ts';
import { answerPull, fileWriterOf, type NodeView, type PullAnswer } from './decide.ts';
import type { Log } from './log.ts';
import type { ProviderOptions } from './options.ts';
import { EMPTY_RESPONSE, responseText } from './request.ts';

export interface ProvideResult {
  /** Response, or empty on failure. */
  readonly stdout: string;
  readonly exitCode: 0 | 1;
}

/**
 * Where CRI-O looks for the auth file of an image in a namespace.
 *
 * @example
 * ```ts
 * import { authFilePath } from './provide.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(
 *   authFilePath('/etc/crio/auth', 'default', 'docker.io/library/nginx'),
 *   '/etc/crio/auth/default-7e59ad64326bc321517fb6fc6586de5ee149178394d9edfa2a877176cdf6fad5.json',
 * );
 * assert.throws(() => authFilePath('auth', 'default', 'nginx'), /provided "auth" directory is not an absolute path/);
 * ```
 */
export function authFilePath(dir: string, namespace: string, image: string): string {
  if (!dir.startsWith('/')) throw noPath(`provided "${dir}" directory is not an absolute path`);
  if (namespace === '') throw noPath('no namespace provided');
  if (image === '') throw noPath('no image ref provided');
  const hash = sha256Hex(image);
  return `${trimEndOf(dir, '/')}/${namespace}-${hash}.json`;
}

function noPath(message: string): PullwrightError {
  return new PullwrightError(message, { code: 'AuthFilePath', disposition: 'terminal' });
}

/** Never rejects: what goes wrong is a line in the log and exit code 1, after which the kubelet goes on without us. */
export async function provide(view: NodeView, options: ProviderOptions, log: Log): Promise<ProvideResult> {
  log.info('Running credential provider');
  try {
    return act(await answerPull(view, options, log), options, log);
  } catch (error) {
    log.error(`Failed to run credential provider: ${describeError(error)}`);
    return { stdout: '', exitCode: 1 };
  }
}

/** Codes of failures that are answers of the API server about this pod: it has no right, or there is nothing. */
const DENIED: readonly string[] = ['SecretsForbidden', 'SecretsNotFound'];

function act(decision: PullAnswer, options: ProviderOptions, log: Log): ProvideResult {
  const { request, puller, file, failure } = decision;
  if (request === undefined) return { stdout: EMPTY_RESPONSE, exitCode: 0 };
  const answer = (keepPrivate: boolean): ProvideResult => ({
    stdout: responseText(request, keepPrivate),
    exitCode: 0,
  });
  if (puller === undefined) return answer(false);
  const path = authFilePath(options.authDir, puller.namespace, request.image);
  if (file !== undefined) {
    writeAuthFile(path, options.authDir, file.text);
    log.info(`Wrote auth file to ${path} with ${file.entries} number of entries`);
    return answer(options.keepImagesPrivate);
  }
  if (failure === undefined) {
    removeOwn(path, fileWriterOf(puller));
    log.info(
      `Namespace ${puller.namespace} has no credential for any pull source, will not write any auth file`,
    );
    return answer(options.keepImagesPrivate && existsSync(path));
  }
  return withoutCredentials(decision, failure, options, { log, answer, path });
}

/**
 * The secrets could not be read. A refusal holds, because it is how an owner takes a right back. Anything else says nothing
 * about the pod: the node's own auth file counts for a pull, and the entry for the exact image lets a container start again
 * whose ServiceAccount has pulled the image before.
 *
 * Where another account of the namespace has left a file for the image, CRI-O takes it whatever is answered. A pull with it
 * must not be recorded as one without credentials, which would open the image to every pod on the node.
 */
function withoutCredentials(
  { covered }: PullAnswer,
  failure: unknown,
  { keepImagesPrivate }: ProviderOptions,
  {
    log,
    answer,
    path,
  }: {
    readonly log: Log;
    readonly answer: (keepPrivate: boolean) => ProvideResult;
    readonly path: string;
  },
): ProvideResult {
  const isDenied = failure instanceof PullwrightError && DENIED.includes(failure.code);
  const keepsIdentity = keepImagesPrivate && (!isDenied || existsSync(path));
  if (covered !== true && !keepsIdentity) throw failure;
  log.error(`Going on with the node's own auth file: ${describeError(failure)}`);
  return answer(keepsIdentity);
}

/**
 * The folder is for root alone, whatever made it; the file appears whole and with mode 0600, and a write that fails leaves what
 * was there. It is not read back: CRI-O may have taken it by then.
 */
function writeAuthFile(path: string, dir: string, text: Redacted<string>): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    if ((statSync(dir).mode & 0o077) !== 0) chmodSync(dir, 0o700);
    const old = lstatSync(path, { throwIfNoEntry: false });
    // A link, or whatever else is no file of ours, cannot be replaced in place.
    if (old !== undefined && !old.isFile()) unlinkSync(path);
    replaceFile(path, new TextEncoder().encode(reveal(text)), {
      mode: 0o600,
      fresh: true,
      durable: 'content',
      verify: false,
    });
  } catch (error) {
    const cause = fileError('write', path, error);
    throw new PullwrightError(`unable to create auth file: ${cause.message}`, {
      code: cause.code,
      ...(cause.hint === undefined ? {} : { hint: cause.hint }),
      cause,
    });
  }
}

/** A file of this account that no longer says what it may have would be used in place of the node's own. */
function removeOwn(path: string, writer: string): void {
  try {
    const text = readFileSync(path, 'utf8');
    if (recordIn(redact(text))?.by === writer) unlinkSync(path);
  } catch {
    // None is there, or CRI-O took it just now.
  }
}
