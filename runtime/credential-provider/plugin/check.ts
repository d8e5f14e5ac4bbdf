/**
 * `--check`: what a run for the kubelet needs, tried without a pod: request, mirror configuration, folder of auth files, address
 * and CA of the API server, and one request that names no namespace and holds no credential. Writes nothing.
 */
import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { readConfFiles, registriesFor } from '../../host/conf-files.ts';
import { fileError } from '../../host/file-errors.ts';
import { describeError, PullwrightError } from '../../rules/errors.ts';
import { redact } from '../../rules/redacted.ts';
import type { DryRunIo } from './dry-run.ts';
import { collectingLog } from './log.ts';
import type { ParsedArguments, ProviderOptions } from './options.ts';
import { parseRequest } from './request.ts';
import { nodeView } from './run.ts';

/** What `--check --output json` prints. */
export interface CheckReport {
  readonly ok: boolean;
  /** For a person: what was found, or what is wrong and what to do. */
  readonly message: string;
}

/** Anybody may ask for it, and whatever the answer is, it comes from the server that was asked. */
const PATH = '/version';

/** 0: a run would get as far as the secrets of a namespace. */
export async function checkNode({ options, output }: ParsedArguments, io: DryRunIo): Promise<0 | 1> {
  const report = await checked(options, io).catch((error: unknown) => ({
    ok: false,
    message: describeError(error),
  }));
  io.stdout.write(output === 'json' ? `${JSON.stringify(report)}\n` : `${report.message}\n`);
  return report.ok ? 0 : 1;
}

async function checked(options: ProviderOptions, io: DryRunIo): Promise<CheckReport> {
  const log = collectingLog(false, ({ text }) => io.stderr.write(`${text}\n`));
  const budget = AbortSignal.any([io.signal, AbortSignal.timeout(options.budgetMs)]);
  const view = nodeView(options, { env: io.env, signal: budget }, log);
  const { image } = parseRequest(await view.stdin());
  await registriesFor(readConfFiles(options, io.env['CONTAINERS_REGISTRIES_CONF_OVERRIDE']), image);
  writable(options.authDir);
  const client = await view.connect(redact(''));
  const { code } = await client.get(PATH);
  if (code >= 500)
    throw new PullwrightError(`the API server answers ${code} to GET ${PATH}`, {
      code: 'ApiError',
      hint: 'Look at the API server; it is tried again',
    });
  return { ok: true, message: `API server found and verified, and it answers (${code})` };
}

/** The folder is made by the first run that writes. */
function writable(folder: string): void {
  let there = folder;
  while (!existsSync(there) && there !== dirname(there)) there = dirname(there);
  try {
    accessSync(there, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw fileError('write', folder, error);
  }
}
