// deadline: 600 s
// needs: Go
/**
 * Whole pulls by containers/image, with every registry there is behind a proxy that asks for a password and has no image: whom
 * it asks, in which order, and with which credentials, against what our rules say. Once with the node's own auth file, once
 * with the file that the provider would write.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { lookupForContainers } from '../../../runtime/core/docker-config/containers-keyring.ts';
import { formatImageReference, parseImageReference } from '../../../runtime/core/image-reference.ts';
import { parseRegistriesConf } from '../../../runtime/core/mirrors/registries-conf.ts';
import { compileMirrors, resolveMirrors } from '../../../runtime/core/mirrors/resolve.ts';
import { redact, reveal } from '../../../runtime/core/redacted.ts';
import {
  authFile,
  chooseCredentials,
  collectOffers,
  NO_GLOBAL_AUTH,
  parseGlobalAuth,
  pullSources,
} from '../../../runtime/credential-provider/auth-file.ts';
import { registriesFor } from '../../../runtime/credential-provider/plugin/conf-files.ts';
import { test } from '../../support/suite.ts';
import { caseCount, compareAll, SEED } from '../kubernetes/oracle.ts';
import { askContainersImage, type Question } from './oracle.ts';
import { authsOf, PULL_QUESTION, type PullQuestion } from './pull-questions.ts';

const cases = caseCount(600);

/** `user:password@host/path`, in the order in which they are asked. */
type Asked = readonly string[];

interface Answer {
  readonly error: string;
  readonly asked?: readonly {
    readonly host: string;
    readonly path: string;
    readonly user: string;
    readonly password: string;
  }[];
}

const theirs = ({ asked = [] }: Answer): Asked =>
  asked.map(({ host, path, user, password }) => `${user}:${password}@${host}/${path}`);

/** Whom the rules would ask with an auth file, given what it holds for a repository: `user:password`, or that it fails. */
function ours({ conf, image }: PullQuestion, credential: (repository: string) => string | undefined): Asked {
  const index = compileMirrors(parseRegistriesConf(conf));
  const named = parseImageReference(image);
  assert.ok(named.ok, image);
  const { candidates, skipped } = resolveMirrors(index, formatImageReference(named.reference));
  // An image whose rewriting gives no reference makes the runtime give up before it asks anybody.
  if (skipped.some(({ reason }) => reason === 'InvalidReference')) return [];
  return candidates.flatMap(({ reference }) => {
    const parsed = parseImageReference(reference);
    assert.ok(parsed.ok, reference);
    const { domain, path, repository, tag, digest } = parsed.reference;
    const pair = credential(repository);
    const host = domain === 'docker.io' ? 'registry-1.docker.io' : domain;
    return pair === undefined ? [] : [`${pair}@${host}/${path}/manifests/${digest ?? tag ?? ''}`];
  });
}

/** Credential of an auth file for a repository; undefined if the look-up fails, and the pull source is skipped. */
function lookedUp(text: string, repository: string): string | undefined {
  const files = [{ name: 'auth.json', format: 'config.json', text: redact(text) }] as const;
  const found = lookupForContainers(files, repository);
  if (found.found === 'error' || found.found === 'helper') return undefined;
  if (found.found === 'nothing') return ':';
  return `${found.credential.username}:${reveal(found.credential.password)}`;
}

interface Provided {
  readonly text: string;
  /** Per repository what the namespace has for it. */
  readonly own: ReadonlyMap<string, string>;
}

/** The file that the provider writes for the image; undefined where it writes none. */
async function provide({ conf, image, node, secrets }: PullQuestion): Promise<Provided | undefined> {
  const parsed = parseImageReference(image);
  assert.ok(parsed.ok);
  const { repository } = parsed.reference;
  const sources = pullSources(registriesFor([{ path: 'registries.conf', text: conf }]), repository);
  const offers = collectOffers(
    secrets.map((pairs, index) => ({
      name: `s${index}`,
      type: 'kubernetes.io/dockerconfigjson',
      body: redact(Buffer.from(JSON.stringify({ auths: authsOf(pairs) })).toString('base64')),
    })),
  );
  const choice = chooseCredentials(offers, sources, []);
  if (choice.entries.length === 0) return undefined;
  const { text } = authFile({ choice, sources, global: parseGlobalAuth(redact(node)) ?? NO_GLOBAL_AUTH });
  const byKey = new Map(choice.entries.map(({ key, credential }) => [key, reveal(credential.auth)]));
  const own = [...choice.keyBySource].map(([place, key]): [string, string] => [
    place,
    Buffer.from(byKey.get(key) ?? '', 'base64').toString(),
  ]);
  return { text: reveal(text), own: new Map(own) };
}

/** The runtime asks a host's helper before it looks at any entry, so where the namespace has one, the provider leaves the helper out. */
function withoutHelpers(node: string, own: Provided['own']): string {
  const { credHelpers = {}, ...rest } = JSON.parse(node) as {
    credHelpers?: Readonly<Record<string, string>>;
  };
  const served = new Set([...own.keys()].map((repository) => repository.split('/', 1)[0]));
  const kept = Object.entries(credHelpers).filter(([host]) => !served.has(host));
  return JSON.stringify({ ...rest, credHelpers: Object.fromEntries(kept) });
}

function pull(question: PullQuestion, auth: string): Question {
  const files = [{ Name: 'registries.conf', Text: question.conf }];
  return { Ask: 'pull', Files: files, Asked: [question.image], Auth: auth };
}

/** Random names of keys may count as much: then Go takes one at random, and nothing can be compared. */
function hasRivals(text: string): boolean {
  const keys = Object.keys((JSON.parse(text) as { auths: object }).auths);
  const host = (key: string): string =>
    key
      .replace(/^https?:\/\/([^/]*).*$/, '$1')
      .replace(/^(?:docker\.io|registry-1\.docker\.io)$/, 'index.docker.io');
  const hosts = keys.map(host).filter((name) => !name.includes('/'));
  return new Set(hosts).size < hosts.length;
}
const questions = fc.sample(PULL_QUESTION, { numRuns: cases, seed: SEED });

test(`${cases} random pulls ask whom the rules say`, () => {
  const clear = questions.filter(({ node }) => !hasRivals(node));
  const answers = askContainersImage(
    clear.map((question) => pull(question, question.node)),
  ) as readonly Answer[];
  let requests = 0;
  compareAll(clear, answers, (question, answer) => {
    const wanted = theirs(answer);
    requests += wanted.length;
    assert.deepEqual(
      ours(question, (repository) => lookedUp(question.node, repository)),
      wanted,
    );
  });
  assert.ok(requests > cases, `only ${requests} requests`);
});

test(`${cases} random pulls find what the provider wrote`, async () => {
  const provided: { question: PullQuestion; file: Provided }[] = [];
  for (const question of questions) {
    const file = await provide(question);
    if (file !== undefined && !hasRivals(question.node)) provided.push({ question, file });
  }
  assert.ok(provided.length > cases / 20, `only ${provided.length} files`);
  const answers = askContainersImage(
    provided.map(({ question, file }) => pull(question, file.text)),
  ) as readonly Answer[];
  compareAll(provided, answers, ({ question, file }, answer) => {
    const node = withoutHelpers(question.node, file.own);
    const credential = (repository: string): string | undefined =>
      file.own.get(repository) ?? lookedUp(node, repository);
    assert.deepEqual(ours(question, credential), theirs(answer));
  });
});
