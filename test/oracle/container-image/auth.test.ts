// deadline: 600 s
// needs: Go
/** Auth files, looked up by ours and by containers/image: which credential a repository gets, which helper is asked, what fails. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  type ContainersLookup,
  lookupForContainers,
} from '../../../runtime/core/docker-config/containers-keyring.ts';
import { redact, reveal } from '../../../runtime/core/redacted.ts';
import { test } from '../../support/suite.ts';
import { caseCount, compareAll, SEED } from '../kubernetes/oracle.ts';
import { AUTH_QUESTION, type AuthQuestion } from './auth-questions.ts';
import { askContainersImage } from './oracle.ts';

const cases = caseCount(1500);

/** Result of a look-up: a credential (empty for none), a helper, or an error. */
interface Found {
  readonly error?: string;
  readonly helper?: string;
  readonly username?: string;
  readonly password?: string;
  readonly identityToken?: string;
}

const NOTHING: Found = { username: '', password: '', identityToken: '' };

function plain(found: ContainersLookup): Found {
  if (found.found === 'error') return { error: 'fails' };
  if (found.found === 'helper') return { helper: found.helper };
  if (found.found === 'nothing') return NOTHING;
  const { username, password, identityToken } = found.credential;
  return { username, password: reveal(password), identityToken: reveal(identityToken) };
}

function theirs({ error, ...rest }: Found): Found {
  return error === undefined || error === '' ? rest : { error: 'fails' };
}

/** Hosts that several keys of the text mean alike: there Go takes one of them at random, and nothing can be compared. */
function contested(text: string, legacy: boolean): ReadonlySet<string> {
  const keys = new Set([...text.matchAll(/"([^"\\]*)":/g)].map(([, key = '']) => key));
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const key of keys) {
    const bare = key.replace(/^http:\/\//, '').replace(/^https:\/\//, '');
    const host = hub(legacy || bare !== key ? bare.replace(/\/.*$/, '') : bare);
    if (seen.has(host)) twice.add(host);
    seen.add(host);
  }
  return twice;
}

function hub(host: string): string {
  return host === 'docker.io' || host === 'registry-1.docker.io' ? 'index.docker.io' : host;
}

function compare({ text, legacy, keys }: AuthQuestion, answers: readonly Found[]): void {
  const format = legacy ? 'dockercfg' : 'config.json';
  const random = contested(text, legacy);
  for (const [index, key] of keys.entries()) {
    if (random.has(hub(key.replace(/\/.*$/, '')))) continue;
    const lookup = lookupForContainers([{ name: 'auth.json', format, text: redact(text) }], key);
    assert.deepEqual(plain(lookup), theirs(answers[index] as Found), key);
  }
}
test(`${cases} random auth files are read alike`, () => {
  const questions = fc.sample(AUTH_QUESTION, { numRuns: cases, seed: SEED });
  const answers = askContainersImage(
    questions.map(({ text, legacy, keys }) => ({ Ask: 'auth', Auth: text, Legacy: legacy, Asked: keys })),
  ) as readonly { readonly found: readonly Found[] }[];
  const all = answers.flatMap(({ found }) => found);
  const credentials = all.filter(({ username = '', identityToken = '' }) => username + identityToken !== '');
  assert.ok(
    credentials.length > all.length / 10,
    `only ${credentials.length} of ${all.length} have a credential`,
  );
  compareAll(questions, answers, (question, { found }) => compare(question, found));
});
