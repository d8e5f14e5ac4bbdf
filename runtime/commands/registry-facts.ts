/** Answers of registries for reconcilers: whether an image is there, and its digest. */
import type { LookUp } from '../controller/facts.ts';
import { probe } from '../registry/probe.ts';
import type { CommandIo } from './command.ts';
import { registryClient } from './registry-access.ts';

/** Looks digests up with the credentials of a docker config.json. */
export async function registryLookUp(authfile: string, env: CommandIo['env']): Promise<LookUp> {
  const client = await registryClient({ authfile }, env);
  return async (need) => {
    const found = await probe(client, need.image);
    return found.digest === undefined
      ? { ok: false, reason: `${found.verdict}: ${found.message}` }
      : { ok: true, value: found.digest };
  };
}
