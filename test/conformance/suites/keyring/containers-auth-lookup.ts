/** The one credential that containers/image takes from an auth file. */
import { isDeepStrictEqual } from 'node:util';
import { lookupForContainers } from '../../../../runtime/core/docker-config/containers-keyring.ts';
import { redact, reveal } from '../../../../runtime/core/redacted.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Input {
  readonly format: 'auth.json' | 'dockercfg';
  readonly file: string;
  readonly key: string;
}

interface Answer {
  readonly username: string;
  readonly password: string;
  readonly identityToken?: string;
  readonly error?: string;
  readonly usernameAnyOf?: readonly string[];
}

/** Error of containers/image for a credential helper that is not installed, as on the machine of the cases. */
function missingHelper(name: string): string {
  return `error getting credentials - err: exec: "docker-credential-${name}": executable file not found in $PATH, out: \`\``;
}

export const suite: ConformanceSuite<Input, Answer> = {
  cases(document) {
    const { cases } = document as {
      cases: readonly (Input & {
        readonly name: string;
        readonly origin: string;
        readonly expected: Answer;
      })[];
    };
    return cases.map(({ name, origin: _origin, expected, ...input }) => {
      if (!['auth.json', 'dockercfg'].includes(input.format))
        throw new Error(`unknown format "${input.format}"`);
      if (expected.usernameAnyOf === undefined) return { name, input, expected };
      const { usernameAnyOf, ...open } = expected;
      if (JSON.stringify(open) !== '{"username":"","password":""}')
        throw new Error('an open user name, and more than that is expected');
      return { name, input, expected: { usernameAnyOf, username: '', password: '' } };
    });
  },
  answer({ format, file, key }) {
    const source = {
      name: 'FILE',
      format: format === 'dockercfg' ? format : 'config.json',
      text: redact(file),
    } as const;
    const found = lookupForContainers([source], key);
    if (found.found === 'error') return { username: '', password: '', error: found.goText };
    if (found.found === 'helper') return { username: '', password: '', error: missingHelper(found.helper) };
    if (found.found === 'nothing') return { username: '', password: '' };
    const { username, password, identityToken } = found.credential;
    const token = reveal(identityToken);
    return { username, password: reveal(password), ...(token === '' ? {} : { identityToken: token }) };
  },
  accepts: (actual, { usernameAnyOf, ...wanted }) =>
    usernameAnyOf === undefined
      ? isDeepStrictEqual({ identityToken: '', ...actual }, { identityToken: '', ...wanted })
      : isDeepStrictEqual({ ...actual, username: '', password: '' }, wanted) &&
        usernameAnyOf.includes(actual.username),
  loosens: ['usernameAnyOf'],
  mutation: {
    file: 'runtime/core/docker-config/containers-keyring.ts',
    replace: "host === 'docker.io' || host === 'registry-1.docker.io'",
    by: "host === 'docker.io'",
  },
};
