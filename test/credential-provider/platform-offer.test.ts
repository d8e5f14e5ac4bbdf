/** What the platform offers to the pods of all namespaces: by the answer to the kubelet, and for mirrors by the auth file. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { suite } from '../support/suite.ts';
import { oracleLookup } from './support/crio-oracle.ts';
import type { NodeDouble } from './support/node-double.ts';
import { pullSecret, requestFor, tokenFor } from './support/node-double.ts';
import { auth, CONF, IMAGE, run, type Setup } from './support/one-run.ts';

const test = suite('what the platform offers');

const FILE = '/platform.json';
const offering = (auths: unknown, setup: Setup = {}): Setup => ({
  ...setup,
  prepare: (node: NodeDouble) => {
    setup.prepare?.(node);
    (node.options as { platformAuthFile?: string }).platformAuthFile = node.folder + FILE;
    writeFileSync(node.folder + FILE, typeof auths === 'string' ? auths : JSON.stringify({ auths }));
  },
});
const answered = (stdout: string): unknown => (JSON.parse(stdout) as { auth?: unknown }).auth;
/** No mirror changes anything for this one. */
const PLAIN = 'quay.io/acme/web';

test('an image without mirrors gets it in the answer, and nobody is asked', () =>
  run(
    offering(
      { 'quay.io': auth('robot:q'), 'docker.io': auth('robot:d') },
      { stdin: requestFor(PLAIN, tokenFor('team-a')) },
    ),
    ({ exitCode, stdout, names, paths }) => {
      assert.equal(exitCode, 0);
      assert.deepEqual(answered(stdout), { 'quay.io': { username: 'robot', password: 'q' } });
      assert.deepEqual([names, paths], [[], []]);
    },
  ));

test('every entry that the kubelet would find is offered, and none that it would not', () =>
  run(
    offering(
      {
        'quay.io': auth('a:1'),
        'quay.io/acme': auth('b:2'),
        'quay.io/other': auth('c:3'),
        '*.io': auth('d:4'),
      },
      { stdin: requestFor(PLAIN, tokenFor('team-a')) },
    ),
    ({ stdout }) =>
      assert.deepEqual(Object.keys(answered(stdout) as object).sort(), ['*.io', 'quay.io', 'quay.io/acme']),
  ));

test('a node without a registries.conf, and a static pod without a token, get it too', async () => {
  await run(
    offering({ 'quay.io': auth('a:1') }, { files: {}, stdin: requestFor(PLAIN, undefined) }),
    ({ stdout }) => assert.deepEqual(answered(stdout), { 'quay.io': { username: 'a', password: '1' } }),
  );
  await run(offering({ 'docker.io': auth('a:1') }, { stdin: requestFor(IMAGE, undefined) }), ({ stdout }) =>
    assert.deepEqual(answered(stdout), { 'docker.io': { username: 'a', password: '1' } }),
  );
});

test('a mirror gets its own entry by the auth file; the namespace goes before it, and the node’s own file too', async () => {
  const mirror = 'mirror.example.com/hub/library/nginx';
  const platform = { 'mirror.example.com': auth('p:platform'), 'docker.io': auth('p:hub') };
  await run(offering(platform, { api: { secrets: [] } }), ({ auths, stdout }) => {
    assert.equal(oracleLookup(auths, mirror), 'p:platform');
    assert.equal(oracleLookup(auths, IMAGE), 'p:hub');
    assert.deepEqual(answered(stdout), { [IMAGE]: { username: '', password: '' } }, 'the file has it all');
  });
  await run(offering(platform), ({ auths }) => {
    assert.equal(oracleLookup(auths, mirror), 'u:p', 'what the namespace has');
    assert.equal(oracleLookup(auths, IMAGE), 'p:hub');
  });
  const globalAuth = JSON.stringify({ auths: { 'docker.io': auth('n:node') } });
  await run(offering(platform, { files: { registriesConf: CONF, globalAuth } }), ({ auths }) =>
    assert.equal(oracleLookup(auths, IMAGE), 'n:node'),
  );
});

test('when the API server refuses, what the platform offers is still there, and the failure is said', () =>
  run(offering({ 'mirror.example.com': auth('p:platform') }, { api: { mode: 'forbid-secrets' } }), (seen) => {
    assert.equal(seen.exitCode, 0);
    assert.equal(oracleLookup(seen.auths, 'mirror.example.com/hub/library/nginx'), 'p:platform');
    assert.ok(seen.log.some((line) => line.includes('Going on with what the platform offers')));
  }));

for (const [what, prepare] of [
  ['is not there', undefined],
  ['cannot be read', (node: NodeDouble) => mkdirSync(node.folder + FILE)],
] as const)
  test(`a file that ${what} costs nothing else`, () =>
    run(
      {
        prepare: (node) => {
          (node.options as { platformAuthFile?: string }).platformAuthFile = node.folder + FILE;
          prepare?.(node);
        },
      },
      ({ exitCode, auths }) => {
        assert.equal(exitCode, 0);
        assert.equal(oracleLookup(auths, 'mirror.example.com/hub/library/nginx'), 'u:p');
      },
    ));

for (const text of [
  '',
  '{',
  '[]',
  '{"auths":[]}',
  '{"auths":{"quay.io":{"auth":"%%"}}}',
  '{"auths":{"quay.io":1}}',
])
  test(`${JSON.stringify(text)} offers nothing`, () =>
    run(offering(text, { stdin: requestFor(PLAIN, tokenFor('team-a')) }), ({ exitCode, stdout }) => {
      assert.equal(exitCode, 0);
      assert.equal(answered(stdout), undefined);
    }));

test('without the option nothing is offered', () =>
  run(
    { stdin: requestFor(PLAIN, tokenFor('team-a')), api: { secrets: [pullSecret('x', {})] } },
    ({ stdout }) => assert.equal(answered(stdout), undefined),
  ));

test.run();
