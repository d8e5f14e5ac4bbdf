/** Keys of a secret and of the node's file that the auth file contains, for given mirrors. */

import { redact, reveal } from '../../../../runtime/core/redacted.ts';
import {
  authFile,
  canonicalKey,
  chooseCredentials,
  collectOffers,
  parseGlobalAuth,
  pullSources,
} from '../../../../runtime/credential-provider/auth-file.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Input {
  readonly name: string;
  readonly globalRegs: readonly string[];
  readonly secretRegs: readonly string[];
  readonly image: string;
  readonly mirrors: readonly string[];
  readonly wantSecret?: readonly string[];
  readonly wantGlobal?: readonly string[];
  readonly notWant?: readonly string[];
  readonly secretAuth: string;
  readonly globalAuth: string;
}

/** Key to the credential it must have, or null where it must be absent. */
type Wanted = Readonly<Record<string, string | null>>;

export const suite: ConformanceSuite<Input, Wanted> = {
  cases(document) {
    const { cases, secretAuth, globalAuth } = document as Omit<Input, 'name'> & { cases: readonly Input[] };
    return cases.map((one) => ({
      name: one.name,
      input: { ...one, secretAuth, globalAuth },
      expected: Object.fromEntries([
        ...(one.wantGlobal ?? []).map((key) => [key, globalAuth]),
        ...(one.wantSecret ?? []).map((key) => [key, secretAuth]),
        ...(one.notWant ?? []).map((key) => [key, null]),
      ]),
    }));
  },
  answer(input) {
    const auths = contentsOf(input);
    const keys = [...(input.wantGlobal ?? []), ...(input.wantSecret ?? []), ...(input.notWant ?? [])];
    return Object.fromEntries(keys.map((key) => [key, auths[key]?.auth ?? null]));
  },
  mutation: {
    file: 'runtime/credential-provider/auth-file.ts',
    replace: 'if (offered === undefined) return false;',
    by: 'return false;',
  },
};

/** The mirrors as places that are served as they stand, which is what the table speaks of. */
function contentsOf(input: Input): Readonly<Record<string, { auth: string }>> {
  const host = input.image.slice(0, input.image.indexOf('/'));
  const mirrors = input.mirrors.map((location) => ({ location, pullFrom: 'all' as const }));
  const registry = { prefix: host, location: host, blocked: false, insecure: false, mirrors };
  const sources = pullSources([registry], input.image);
  const body = {
    auths: Object.fromEntries(input.secretRegs.map((key) => [key, { auth: input.secretAuth }])),
  };
  const secret = {
    name: 's',
    type: 'kubernetes.io/dockerconfigjson',
    body: redact(btoa(JSON.stringify(body))),
  };
  const choice = chooseCredentials(collectOffers([secret]), sources, []);
  const node = {
    auths: Object.fromEntries(input.globalRegs.map((key) => [key, { auth: input.globalAuth }])),
  };
  const global = parseGlobalAuth(redact(JSON.stringify(node)));
  if (global === undefined) throw new Error('the node file of the table is not read');
  // The table speaks of a file with all of the node's entries: each of them is given a place that needs it.
  const places = input.globalRegs.map((key) => ({ repository: canonicalKey(key), kind: 'mirror' as const }));
  const unserved = places.filter(({ repository }) => !choice.entries.some(({ key }) => key === repository));
  return JSON.parse(reveal(authFile({ choice, sources: [...sources, ...unserved], global }).text)).auths;
}
