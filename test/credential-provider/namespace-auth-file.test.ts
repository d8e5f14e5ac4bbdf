import assert from 'node:assert/strict';
import { redact, reveal } from '../../runtime/core/redacted.ts';
import {
  authFile,
  type Choice,
  type GlobalAuth,
  globalCovers,
  NO_GLOBAL_AUTH,
  parseGlobalAuth,
  recordIn,
} from '../../runtime/credential-provider/auth-file.ts';
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

const OTHER = 'quay.io/acme/app';

/** The file for an image that comes from the namespace's mirror, else from another place. */
function written(key: string, document: unknown): ReturnType<typeof authFile> {
  const sources = [
    { repository: REPOSITORY, kind: 'mirror' },
    { repository: OTHER, kind: 'primary' },
  ] as const;
  return authFile({ choice: choice(key), sources, global: node(document) });
}

test('of the node’s entries there are those that another place of the image needs, and no others', () => {
  const auths = Object.fromEntries(
    ['quay.io', 'quay.io/acme', 'quay.io/other', 'https://quay.io/v1/', 'ghcr.io', 'quay.io.example.com'].map(
      (name) => [name, { auth: NODE, email: 'e' }],
    ),
  );
  const file = written('mirror.example.com', { auths, extra: 1 });
  assert.deepEqual(entries(file), {
    'https://quay.io/v1/': 'node',
    'mirror.example.com': 'team',
    'quay.io': 'node',
    'quay.io/acme': 'node',
  });
  assert.equal(file.entries, 4);
  const whole = JSON.parse(reveal(file.text)) as { auths: Record<string, unknown> };
  assert.deepEqual(whole.auths['quay.io'], { auth: NODE, email: 'e' });
  assert.deepEqual(Object.keys(whole), ['auths']);
});

test('an entry of the node for a place that the namespace serves gives way, however it is spelled', () => {
  for (const spelled of [
    'mirror.example.com',
    'mirror.example.com/team',
    REPOSITORY,
    'https://mirror.example.com',
    'http://mirror.example.com/v1/',
  ])
    for (const key of ['mirror.example.com', 'mirror.example.com/team'])
      assert.deepEqual(entries(written(key, { auths: { [spelled]: { auth: NODE } } })), { [key]: 'team' });
});

test('a key that is a URL counts by its host', () => {
  const file = written('mirror.example.com', { auths: { 'https://quay.io/elsewhere': { auth: NODE } } });
  assert.deepEqual(entries(file), { 'https://quay.io/elsewhere': 'node', 'mirror.example.com': 'team' });
});

test('credential helpers: those of hosts that the namespace does not serve and the image needs', () => {
  const credHelpers = { 'mirror.example.com': 'x', 'quay.io': 'y', 'ghcr.io': 'z' };
  const { text } = written('mirror.example.com', { auths: {}, credHelpers });
  assert.deepEqual(JSON.parse(reveal(text)).credHelpers, { 'quay.io': 'y' });
});

test('a record says who wrote the file, and the runtime passes it over', () => {
  const record = { by: 'team-a/app', until: '2026-01-01T00:30:00.000Z' };
  const { text } = authFile({
    choice: choice('mirror.example.com'),
    sources: [],
    global: NO_GLOBAL_AUTH,
    record,
  });
  assert.deepEqual(recordIn(text), record);
  for (const other of ['{', '[]', '{"auths":{}}', '{"pullwright.dev/record":{"by":1,"until":""}}'])
    assert.equal(recordIn(redact(other)), undefined, other);
});

test("the node's file: no auths and null are none, everything else is no file", () => {
  for (const none of [{}, { auths: null }]) assert.equal(reveal(node(none).auths).size, 0);
  for (const text of ['{"auths":[]}', '{"auths":"x"}', '{"auths":1}', '[]', 'null', '{'])
    assert.equal(parseGlobalAuth(redact(text)), undefined, text);
});

test('what the runtime would give the file up for is not copied into it', () => {
  const auths = { 'quay.io': { auth: 5 }, 'quay.io/acme': 'x', 'quay.io/acme/app': { auth: NODE, x: [1] } };
  const file = written('mirror.example.com', { auths, credHelpers: { 'quay.io': 5 } });
  const whole = JSON.parse(reveal(file.text)) as { auths: Record<string, unknown> };
  assert.deepEqual(Object.keys(whole), ['auths']);
  assert.deepEqual(whole.auths, { 'mirror.example.com': { auth: TEAM }, [OTHER]: { auth: NODE } });
});

test('names of fields are read as the runtime reads them: without regard to case, the second adds to the first', () => {
  const text = `{"Auths":{"quay.io":{"auth":"${NODE}"}},"auths":{"quay.io/acme":{"Auth":"${NODE}"}},"CREDHELPERS":{"quay.io":"y"}}`;
  const global = parseGlobalAuth(redact(text));
  assert.deepEqual([...reveal(global?.auths ?? NO_GLOBAL_AUTH.auths).keys()], ['quay.io', 'quay.io/acme']);
  assert.deepEqual([...reveal(global?.helpers ?? NO_GLOBAL_AUTH.helpers)], [['quay.io', 'y']]);
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
