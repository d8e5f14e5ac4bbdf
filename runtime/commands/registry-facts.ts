/** Answers of registries for reconcilers: whether an image is there, and its digest. */
import type { Fact, Need } from '../controller/contract.ts';
import { type LookUp, NOT_ASKED } from '../controller/lookups.ts';
import { asPullwrightError } from '../kube/failure.ts';
import { RegistryClient } from '../registry/client.ts';
import { probe } from '../registry/probe.ts';
import type { AuthSource } from '../rules/auth-lookup/kubelet.ts';
import { pullSecretSource } from '../rules/docker-config/secret-text.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { SecretObject } from '../rules/kubernetes/object.ts';
import { sameSecret } from '../rules/redacted.ts';
import type { CommandIo } from './command.ts';
import {
  type AccessValues,
  authFault,
  credentialsFrom,
  readAuthFile,
  registryTransport,
} from './registry-access.ts';

export interface RegistryLookUpOptions {
  /** docker config.json for all clusters, asked after the pull secret of each. */
  readonly authfile: string | undefined;
  /** The Secret as it is now; undefined when there is none. */
  readonly readSecret: (ref: PullSecretRef) => Promise<SecretObject | undefined>;
  readonly env: CommandIo['env'];
  /** How registries are reached. @default as the flags of `mirrors` by default */
  readonly access?: Omit<AccessValues, 'authfile'>;
}

type PullSecretRef = NonNullable<Need['pullSecret']>;

interface Asker {
  readonly own: AuthSource | undefined;
  readonly client: RegistryClient;
}

/**
 * Looks digests up with what the nodes of the cluster will use, its own pull secret, and with the file for what that does not cover.
 * Each cluster has a client of its own: no token of one serves another.
 *
 * @throws UsageError when the file cannot be used
 */
export async function registryLookUp(options: RegistryLookUpOptions): Promise<LookUp> {
  const { authfile, readSecret, env, access = {} } = options;
  const { transport, timeoutMs } = await registryTransport(access, env);
  const file = authfile === undefined ? [] : [await readAuthFile(authfile)];
  const askers = new Map<string, Asker>();
  const clientFor = (place: string, own: AuthSource | undefined): RegistryClient => {
    const known = askers.get(place);
    if (known !== undefined && isSame(known.own, own)) return known.client;
    const credentialFor = credentialsFrom(own === undefined ? file : [own, ...file]);
    const client = new RegistryClient({
      transport,
      credentialFor,
      timeoutMs,
      // Mirror sets of a hosted cluster are its tenant's; a registry that there is a credential for is the platform's.
      chosenBy: ({ repository }) => (credentialFor(repository) === undefined ? 'tenant' : 'platform'),
    });
    askers.set(place, { own, client });
    return client;
  };
  return async ({ image, pullSecret, asked }): Promise<Fact> => {
    if (authfile === undefined && asked !== true) return { ok: false, reason: NOT_ASKED };
    const place = pullSecret === undefined ? '' : `Secret/${pullSecret.namespace}/${pullSecret.name}`;
    try {
      const own = pullSecret === undefined ? undefined : await ownSource(place, pullSecret, readSecret);
      return await answer(clientFor(place, own), image);
    } catch (error) {
      // The file speaks for all, so that it does for one whose own Secret cannot be used.
      if (file.length > 0) return answer(clientFor(`${place} (without it)`, undefined), image);
      const { code, message } = asPullwrightError(error);
      return { ok: false, reason: `${code}: ${message}` };
    }
  };
}

async function answer(client: RegistryClient, image: string): Promise<Fact> {
  const found = await probe(client, image);
  return found.digest === undefined
    ? { ok: false, reason: `${found.verdict}: ${found.message}` }
    : { ok: true, value: found.digest };
}

async function ownSource(
  place: string,
  ref: PullSecretRef,
  readSecret: RegistryLookUpOptions['readSecret'],
): Promise<AuthSource> {
  // What the API server says of the Secret must not be taken for the answer of a registry.
  const secret = await readSecret(ref).catch((error: unknown) => {
    throw new PullwrightError(`Cannot ask registries with "${place}": ${asPullwrightError(error).message}`, {
      code: 'PullSecretUnusable',
      cause: error,
    });
  });
  const source = secret === undefined ? undefined : pullSecretSource(secret);
  const fault =
    secret === undefined
      ? 'it does not exist'
      : source === undefined
        ? 'it is no pull secret'
        : authFault(source);
  if (source !== undefined && fault === undefined) return source;
  throw new PullwrightError(`Cannot ask registries with "${place}": ${fault}`, {
    code: 'PullSecretUnusable',
  });
}

function isSame(a: AuthSource | undefined, b: AuthSource | undefined): boolean {
  return a === undefined || b === undefined ? a === b : sameSecret(a.text, b.text);
}
