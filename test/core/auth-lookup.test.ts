import assert from 'node:assert/strict';
import fc from 'fast-check';
import { lookupForContainers } from '../../runtime/core/docker-config/containers-keyring.ts';
import { kubeletKeyring, lookupForKubelet } from '../../runtime/core/docker-config/kubelet-keyring.ts';
import { matchesImage } from '../../runtime/core/docker-config/match-images.ts';
import type { AuthSource } from '../../runtime/core/docker-config/pull-secret.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { plantedAuth } from '../support/canary.ts';
import { forAll } from '../support/for-all.ts';
import { table, test } from '../support/suite.ts';

function source(name: string, keys: readonly string[]): AuthSource {
  const auths = Object.fromEntries(
    keys.map((key) => [key, { auth: plantedAuth('lookup', key.replaceAll(':', ';')) }]),
  );
  return { name, format: 'config.json', text: redact(JSON.stringify({ auths })) };
}

/** Keys that the kubelet tries, and the one that CRI-O takes, in one file. */
function both(keys: readonly string[], repository: string): readonly [readonly string[], string | undefined] {
  const file = source('file', keys);
  const keyring = kubeletKeyring({ secrets: [], node: file });
  assert.ok(keyring.ok);
  const found = lookupForContainers([file], repository);
  return [
    lookupForKubelet(keyring.rings, repository).map(({ written }) => written),
    found.found === 'credential' ? found.entry.written : undefined,
  ];
}

table(
  test,
  [
    {
      name: 'all that match, the longest first',
      reason: 'CRI-O takes one',
      keys: ['r.io', 'r.io/a', 'r.io/a/b'],
      kubelet: ['r.io/a/b', 'r.io/a', 'r.io'],
      crio: 'r.io/a/b',
    },
    {
      name: 'a plain prefix',
      reason: 'CRI-O wants whole segments',
      keys: ['r.io/a/b/c'.slice(0, 7)],
      kubelet: ['r.io/a/'],
      crio: undefined,
    },
    {
      name: 'a part of a segment',
      reason: 'the kubelet compares texts',
      keys: ['r.io/a/b/'.slice(0, 5)],
      kubelet: ['r.io/'],
      crio: undefined,
    },
    { name: 'a wildcard', reason: 'CRI-O knows none', keys: ['*.io'], kubelet: ['*.io'], crio: undefined },
    {
      name: 'a scheme',
      reason: 'CRI-O looks at it last',
      keys: ['https://r.io/v2/'],
      kubelet: ['https://r.io/v2/'],
      crio: 'https://r.io/v2/',
    },
    { name: 'another port', reason: 'ports are compared', keys: ['r.io:443'], kubelet: [], crio: undefined },
    {
      name: 'another case',
      reason: 'hosts are compared as texts',
      keys: ['R.io'],
      kubelet: [],
      crio: undefined,
    },
  ],
  ({ keys, kubelet, crio }) => assert.deepEqual(both(keys, 'r.io/a/b'), [kubelet, crio]),
);

test('index.docker.io counts for Docker Hub when nothing else matches, in each keyring for itself', () => {
  const node = source('node', ['https://index.docker.io/v1/', 'docker.io']);
  const keyring = kubeletKeyring({ secrets: [source('a', ['index.docker.io'])], node });
  assert.ok(keyring.ok);
  const tried = lookupForKubelet(keyring.rings, 'docker.io/library/nginx');
  assert.deepEqual(
    tried.map(({ source: from, written, by }) => [from, written, by]),
    [
      ['a', 'index.docker.io', 'hub'],
      ['node', 'docker.io', 'match'],
    ],
  );
});

test('an unreadable secret fails the pod, an unreadable node file does not', () => {
  const broken = { ...source('broken', []), text: redact('{"auths":{"x":{"auth":"!"}}}') };
  const failed = kubeletKeyring({ secrets: [source('good', ['r.io']), broken] });
  assert.equal(!failed.ok && failed.source, 'broken');
  const passed = kubeletKeyring({ secrets: [source('good', ['r.io'])], node: broken });
  assert.ok(passed.ok);
  assert.equal(lookupForKubelet(passed.rings, 'r.io/a').length, 1);
});

test('an entry without credential ends the search of CRI-O', () => {
  const text = redact('{"auths":{"r.io/a":{},"r.io":{"auth":"dTpw"}}}');
  const found = lookupForContainers([{ name: 'f', format: 'config.json', text }], 'r.io/a/b');
  assert.equal(found.found === 'nothing' && found.stoppedBy?.written, 'r.io/a');
});

test('a credential helper is asked before any key', () => {
  const text = redact('{"auths":{"r.io":{"auth":"dTpw"}},"credHelpers":{"r.io":"ecr-login"}}');
  const found = lookupForContainers([{ name: 'f', format: 'config.json', text }], 'r.io/a');
  assert.equal(found.found === 'helper' && found.helper, 'ecr-login');
});

test('of several lists of helpers the last word for the host counts, and null takes it back', () => {
  const found = (helpers: string): string => {
    const text = redact(`{"auths":{"r.io":{"auth":"dTpw"}},${helpers}}`);
    const answer = lookupForContainers([{ name: 'f', format: 'config.json', text }], 'r.io/a');
    return answer.found === 'helper' ? answer.helper : answer.found;
  };
  assert.equal(found('"credHelpers":{"r.io":"one"},"credHelpers":{"r.io":"two"}'), 'two');
  assert.equal(found('"credHelpers":{"r.io":"one"},"credHelpers":{"x.io":"two"}'), 'one');
  assert.equal(found('"credHelpers":{"r.io":"one"},"credHelpers":null'), 'credential');
  assert.equal(found('"credHelpers":null,"credHelpers":{"r.io":"two"}'), 'two');
});

test('an entry that CRI-O cannot decode is an error where it is the one, and nothing elsewhere', () => {
  const text = redact('{"auths":{"r.io/a":{"auth":"!"},"r.io":{"auth":"dTpw"}}}');
  const found = (repository: string): string =>
    lookupForContainers([{ name: 'f', format: 'config.json', text }], repository).found;
  assert.equal(found('r.io/a/b'), 'error');
  assert.equal(found('r.io/b'), 'credential');
});

const HOST = fc.constantFrom(
  'r.io',
  'a.r.io',
  'quay.io',
  'docker.io',
  'index.docker.io',
  '*.io',
  '*.r.io',
  'r.io:443',
);
const PATH = fc.constantFrom('', '/', '/a', '/a/b', '/ab', '/a/');
const KEYS = fc.uniqueArray(
  fc.tuple(HOST, PATH).map((parts) => parts.join('')),
  { maxLength: 8 },
);
const REPOSITORY = fc
  .tuple(
    HOST.filter((host) => !host.includes('*')),
    fc.constantFrom('/a', '/a/b', '/abc', '/x'),
  )
  .map((parts) => parts.join(''));

test('a credential is never used for an image that its key does not match', () => {
  forAll({ numRuns: 500 }, KEYS, REPOSITORY, (keys, repository) => {
    const [kubelet, crio] = both(keys, repository);
    for (const key of kubelet) {
      assert.ok(
        matchesImage(key.replace(/(?<=^[^/]*)\/$/, ''), repository) ||
          key.replace(/\/$/, '') === 'index.docker.io',
        `${key} for ${repository}`,
      );
    }
    const hub = (host: string): string => host.replace(/^(index|registry-1)\./, '');
    if (crio !== undefined)
      assert.ok(`${hub(repository)}/`.startsWith(`${hub(crio)}/`), `${crio} for ${repository}`);
  });
});

test('look-ups are total', () => {
  forAll({}, fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (key, repository) => {
    const [kubelet] = both([key], repository);
    assert.ok(kubelet.length <= 1);
  });
});
