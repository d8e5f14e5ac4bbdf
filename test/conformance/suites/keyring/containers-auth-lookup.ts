/** The one credential that containers/image takes from an auth file. */
import { lookupForContainers } from '../../../../runtime/rules/auth-lookup/containers.ts';
import { redact, reveal } from '../../../../runtime/rules/redacted.ts';
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
      return { name, input, expected };
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
    if (found.found === 'helper') return { username: '', password: '', error: `helper ${found.helper}` };
    if (found.found === 'nothing') return { username: '', password: '' };
    const { username, password, identityToken } = found.credential;
    const token = reveal(identityToken);
    return { username, password: reveal(password), ...(token === '' ? {} : { identityToken: token }) };
  },
  accepts(actual, expected) {
    const { usernameAnyOf, ...wanted } = expected;
    if (usernameAnyOf !== undefined)
      return actual.error === undefined && usernameAnyOf.includes(actual.username);
    if (wanted.error !== undefined) return actual.error === wanted.error;
    return (
      actual.error === undefined &&
      actual.username === wanted.username &&
      actual.password === wanted.password &&
      (wanted.identityToken ?? '') ===
        (actual.identityToken ?? (wanted.identityToken === undefined ? '' : undefined))
    );
  },
  mutation: {
    file: 'runtime/rules/auth-lookup/containers.ts',
    replace: "host === 'docker.io' || host === 'registry-1.docker.io'",
    by: "host === 'docker.io'",
  },
};
