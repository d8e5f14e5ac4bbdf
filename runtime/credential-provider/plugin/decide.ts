/** Computes the auth file for a request. Writes nothing. */

import { errnoOf, PullwrightError } from '../../core/errors.ts';
import type { Redacted } from '../../core/redacted.ts';
import { someOf } from '../../core/text.ts';
import {
  type AuthFile,
  authFile,
  type Choice,
  chooseCredentials,
  collectOffers,
  type GlobalAuth,
  globalCovers,
  NO_GLOBAL_AUTH,
  type Offers,
  type PullSource,
  parseGlobalAuth,
  pullSources,
} from '../auth-file.ts';
import type { ProviderOptions } from '../provider-flags.ts';
import type { ApiGet } from './api-server.ts';
import { type ConfFile, registriesFor } from './conf-files.ts';
import type { Log } from './journal.ts';
import { type ProviderRequest, parseRequest } from './request.ts';
import { type Puller, pullerOf, readOtherTypes, readSecrets, referencedSecrets } from './secrets.ts';

/** Inputs of the decision. */
export interface NodeView {
  /** Text of stdin. */
  readonly stdin: () => Promise<string>;
  readonly confFiles: () => readonly ConfFile[];
  /** Text of the node's own auth file. Throws when it is missing or unreadable. */
  readonly globalAuth: () => Redacted<string>;
  /** Throws without a CA. */
  readonly connect: (token: Redacted<string>) => Promise<ApiGet>;
}

/** Identifies the account in its auth files. */
export function fileWriterOf({ namespace, serviceAccount }: Puller): string {
  return `${namespace}/${serviceAccount ?? ''}`;
}

export interface PullAnswer {
  readonly request: ProviderRequest | undefined;
  readonly puller?: Puller;
  readonly sources: readonly PullSource[];
  readonly choice?: Choice;
  /** The auth file to write; absent: none is desired. */
  readonly file?: AuthFile;
  /** Why the namespace's credentials could not be read; the pull may succeed without them. */
  readonly failure?: unknown;
  /** Whether the node's own file covers a source; set only after a failure. */
  readonly covered?: boolean;
}

/** Decides. Throws for an invalid request, token or mirror configuration. */
export async function answerPull(view: NodeView, options: ProviderOptions, log: Log): Promise<PullAnswer> {
  const files = view.confFiles();
  if (files.length === 0) {
    log.info(`Registries conf path "${options.registriesConf}" does not exist, stopping`);
    return { request: undefined, sources: [] };
  }
  const request = parseRequest(await view.stdin());
  if (request.image === '')
    throw new PullwrightError('unable to match mirrors: request is nil or image is empty', {
      code: 'RequestUnusable',
    });
  log.about({ image: request.image });
  const sources = pullSources(registriesFor(files), request.image);
  if (sources.length === 0) {
    log.info('No mirrors found, will not write any auth file');
    return { request, sources };
  }
  if (request.token === undefined) {
    log.info(
      `No service account token for "${request.image}" (a static pod): the pull uses the node's auth file`,
    );
    return { request, sources };
  }
  const puller = pullerOf(request.token);
  log.about(puller);
  log.info(`Got ${sources.length} pull source(s) for "${request.image}" in namespace ${puller.namespace}`);
  for (const { kind, repository } of sources) log.detail(`Pull source (${kind}): ${repository}`);
  return {
    request,
    puller,
    sources,
    ...(await fromSecrets({ view, options, request, puller, sources, log })),
  };
}

interface Pull {
  readonly view: NodeView;
  readonly options: ProviderOptions;
  readonly request: ProviderRequest;
  readonly puller: Puller;
  readonly sources: readonly PullSource[];
  readonly log: Log;
}

async function fromSecrets(pull: Pull): Promise<Pick<PullAnswer, 'choice' | 'file' | 'failure' | 'covered'>> {
  const { sources } = pull;
  let choice: Choice;
  try {
    choice = await choose(pull);
  } catch (failure) {
    return { failure, covered: globalCovers(readGlobal(pull), sources) };
  }
  if (choice.entries.length === 0) return { choice };
  const file = authFile({ choice, sources, global: readGlobal(pull), by: fileWriterOf(pull.puller) });
  return { choice, file };
}

async function choose({ view, options, request, puller, sources, log }: Pull): Promise<Choice> {
  const get = await view.connect(request.token as Redacted<string>);
  const found = await readSecrets(get, puller, request, options.secrets);
  log.info(`Got ${found.secrets.length} secret(s) of namespace ${puller.namespace}`);
  const byList = found.order === undefined;
  const choice = await ordered(collectOffers(found.secrets), found.order);
  if (choice.entries.length > 0 || !byList) return choice;
  return ordered(collectOffers(await readOtherTypes(get, puller)), undefined);

  /** The choice; reads pod and ServiceAccount only when Secrets contradict each other. */
  async function ordered(offers: Offers, known: readonly string[] | undefined): Promise<Choice> {
    let picked = chooseCredentials(offers, sources, known ?? []);
    if (known === undefined && picked.entries.some(({ passedOver }) => passedOver.length > 0)) {
      const order = await referencedSecrets(get, puller);
      if (order === undefined)
        log.warn('Cannot read the pod or its service account, ordering the secrets by name');
      picked = chooseCredentials(offers, sources, order ?? []);
    }
    reportSkipped([...offers.skipped, ...picked.skipped], log);
    reportChoice(picked, log);
    return picked;
  }
}

const SHOWN = 3;

function reportSkipped(skipped: readonly string[], log: Log): void {
  for (const line of skipped.slice(0, SHOWN)) log.warn(`Skipped ${line}`);
  if (skipped.length > SHOWN) log.warn(`Skipped ${skipped.length - SHOWN} more secrets or entries`);
  for (const line of skipped.slice(SHOWN)) log.detail(`Skipped ${line}`);
}

function reportChoice({ entries, keyBySource }: Choice, log: Log): void {
  const contested = entries.filter(({ passedOver }) => passedOver.length > 0);
  for (const { key, secret, passedOver } of contested.slice(0, SHOWN)) {
    const others = passedOver.map((name) => `"${name}"`);
    log.warn(`Secrets conflict on "${key}": using "${secret}", not ${someOf(others, SHOWN)}`);
  }
  if (contested.length > SHOWN) log.warn(`Secrets conflict on ${contested.length - SHOWN} more keys`);
  for (const [repository, key] of keyBySource) log.detail(`Using key "${key}" for ${repository}`);
}

/** The node's own file. An unusable one must not prevent the use of the namespace's credentials. */
function readGlobal({ view, options: { globalAuthFile }, log }: Pull): GlobalAuth {
  try {
    const global = parseGlobalAuth(view.globalAuth());
    if (global !== undefined) return global;
    log.warn(
      `Cannot use the node's auth file "${globalAuthFile}": it is not a JSON object with "auths", ignoring it`,
    );
  } catch (error) {
    const state = errnoOf(error) ?? 'unreadable';
    if (state !== 'ENOENT')
      log.warn(`Cannot read the node's auth file "${globalAuthFile}": ${state}, ignoring it`);
  }
  return NO_GLOBAL_AUTH;
}
