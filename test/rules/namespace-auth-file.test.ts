import assert from 'node:assert/strict';
import {
  authFile,
  type GlobalAuth,
  globalCovers,
  NO_GLOBAL_AUTH,
  parseGlobalAuth,
} from '../../runtime/rules/credential-provider/namespace-auth-file.ts';
import type { Choice } from '../../runtime/rules/credential-provider/namespace-credentials.ts';
import { redact, reveal } from '../../runtime/rules/redacted.ts';
import { plantedAuth } from '../support/canary.ts';
import { suite } from '../support/suite.ts';

const test = suite('auth file of a namespace');
const TEAM = plantedAuth('team');
const NODE = plantedAuth('node');
const REPOSITORY = 'mirror.example.com/team/app';

/** The namespace has a credential for this key, and it serves the repository. */
function choice(key: string): Choice {
  const credential = { auth: redact(TEAM) };
  return {
    entries: [{ key, secret: 'pull', credential, passedOver: [] }],
    keyBySource: new Map([[REPOSITORY, key]]),
    skipped: [],
  };
}

function node(document: unknown): GlobalAuth {
  const read = parseGlobalAuth(redact(JSON.stringify(document)));
  assert.ok(read !== undefined);
  return read;
}

/** The entries of the file, each as whose it is. */
function entries(file: ReturnType<typeof authFile>): Readonly<Record<string, string>> {
  const { auths } = JSON.parse(reveal(file.text)) as { auths: Record<string, { auth: string }> };
  return Object.fromEntries(
    Object.entries(auths).map(([key, { auth }]) => [key, auth === TEAM ? 'team' : 'node']),
  );
}

test('the node keeps its other entries', () => {
  const file = authFile(choice('mirror.example.com'), node({ auths: { 'quay.io': { auth: NODE } } }));
  assert.deepEqual(entries(file), { 'mirror.example.com': 'team', 'quay.io': 'node' });
  assert.equal(file.entries, 2);
});

test('an entry of the node that would be found first is overruled for the repository alone', () => {
  const global = node({ auths: { 'mirror.example.com/team': { auth: NODE } } });
  assert.deepEqual(entries(authFile(choice('mirror.example.com'), global)), {
    'mirror.example.com': 'team',
    'mirror.example.com/team': 'node',
    [REPOSITORY]: 'team',
  });
});

test('an entry of the node that would be found later needs no overruling', () => {
  const global = node({ auths: { 'mirror.example.com': { auth: NODE } } });
  assert.deepEqual(entries(authFile(choice('mirror.example.com/team'), global)), {
    'mirror.example.com': 'node',
    'mirror.example.com/team': 'team',
  });
});

test('the same key, and other spellings of it, give way', () => {
  for (const spelled of [
    'mirror.example.com',
    'https://mirror.example.com',
    'http://mirror.example.com/v1/',
  ]) {
    const global = node({ auths: { [spelled]: { auth: NODE } } });
    assert.deepEqual(entries(authFile(choice('mirror.example.com'), global)), {
      'mirror.example.com': 'team',
    });
  }
});

test('a credential helper of a served host goes, others stay', () => {
  const helpers = { 'mirror.example.com': 'x', 'quay.io': 'y' };
  const { text } = authFile(choice('mirror.example.com'), node({ auths: {}, credHelpers: helpers }));
  assert.deepEqual(JSON.parse(reveal(text)).credHelpers, { 'quay.io': 'y' });
});

test("the node's file: no auths and null are none, everything else is no file", () => {
  assert.deepEqual(reveal(node({}).auths), {});
  assert.deepEqual(reveal(node({ auths: null }).auths), {});
  for (const text of ['{"auths":[]}', '{"auths":"x"}', '{"auths":1}', '[]', 'null', '{'])
    assert.equal(parseGlobalAuth(redact(text)), undefined, text);
});

test('the node covers a source by an entry for it or above it, or by a helper of its host', () => {
  const sources = [{ repository: REPOSITORY, kind: 'mirror' }] as const;
  const covers = (document: unknown): boolean => globalCovers(node(document), sources);
  assert.ok(covers({ auths: { 'mirror.example.com/team': { auth: NODE } } }));
  assert.ok(covers({ auths: { 'https://mirror.example.com': { auth: NODE } } }));
  assert.ok(covers({ credHelpers: { 'mirror.example.com': 'x' } }));
  assert.ok(!covers({ auths: { 'mirror.example.com/other': { auth: NODE } } }));
  assert.ok(!covers({ auths: { 'quay.io': { auth: NODE } }, credHelpers: { 'quay.io': 'x' } }));
  assert.ok(!globalCovers(NO_GLOBAL_AUTH, sources));
});

test.run();
