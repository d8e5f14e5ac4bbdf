// deadline: 120 s
/** One run of the provider: auth file, response and log. */
import assert from 'node:assert/strict';
import { chownSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '../support/suite.ts';
import type { ApiState } from './support/api-double.ts';
import { oracleLookup } from './support/crio-oracle.ts';
import { authFiles, pullSecret, requestFor, tokenFor } from './support/node-double.ts';
import { auth, IMAGE, LEFT, run } from './support/one-run.ts';

test('writes for the mirror, keeps the image private, asks once', () =>
  run({}, ({ exitCode, stdout, auths, paths }) => {
    assert.equal(exitCode, 0);
    assert.equal(oracleLookup(auths, 'mirror.example.com/hub/library/nginx'), 'u:p');
    assert.deepEqual(JSON.parse(stdout).auth, { [IMAGE]: { username: '', password: '' } });
    assert.equal(paths.length, 1);
  }));

test('the switch leaves the image usable by all', () =>
  run({ options: { options: { keepImagesPrivate: false } } }, ({ stdout }) =>
    assert.equal(JSON.parse(stdout).auth, undefined),
  ));

test('the pod orders contradicting secrets, then the account, then the name', async () => {
  const secrets = ['a', 'b', 'c'].map((name) =>
    pullSecret(name, { 'mirror.example.com': auth(`u:${name}`) }),
  );
  const used = async (references: Partial<ApiState>): Promise<string> => {
    let found = '';
    await run({ api: { secrets, ...references } }, ({ auths, log, paths }) => {
      found = oracleLookup(auths, 'mirror.example.com/hub/library/nginx') ?? '';
      assert.equal(paths.length, 3);
      assert.ok(log.some((line) => line.includes('Secrets disagree about "mirror.example.com"')));
    });
    return found;
  };
  assert.equal(await used({ pods: { 'web-0': ['c'] }, serviceAccounts: { app: ['b'] } }), 'u:c');
  assert.equal(await used({ pods: { 'web-0': ['gone'] }, serviceAccounts: { app: ['b'] } }), 'u:b');
  assert.equal(await used({}), 'u:a');
});

test('without list, the annotation names the secrets, and the printed Role is enough', () =>
  run(
    {
      api: { mode: 'forbid-list' },
      stdin: requestFor(IMAGE, tokenFor('team-a'), { 'pullwright.dev/image-pull-secrets': 'gone, mirror' }),
    },
    ({ auths, paths }) => {
      assert.equal(oracleLookup(auths, 'mirror.example.com/hub/library/nginx'), 'u:p');
      assert.deepEqual(paths.slice(1), [
        '/api/v1/namespaces/team-a/secrets/gone',
        '/api/v1/namespaces/team-a/secrets/mirror',
      ]);
    },
  ));

test('without list and annotation, pod and account name them', () =>
  run({ api: { mode: 'forbid-list', pods: { 'web-0': ['mirror'] } } }, ({ auths }) =>
    assert.equal(oracleLookup(auths, 'mirror.example.com/hub/library/nginx'), 'u:p'),
  ));

test('named mode never lists', () =>
  run(
    { api: { serviceAccounts: { app: ['mirror'] } }, options: { options: { secrets: 'named' } } },
    ({ exitCode, paths }) => {
      assert.equal(exitCode, 0);
      assert.ok(!paths.some((path) => path.includes('fieldSelector')));
    },
  ));

test('older types are looked at when the usual one has nothing', async () => {
  for (const type of ['kubernetes.io/dockercfg']) {
    const secrets = [pullSecret('old', { 'mirror.example.com': auth('u:old') }, type)];
    await run({ api: { secrets } }, ({ auths }) =>
      assert.equal(oracleLookup(auths, 'mirror.example.com/hub/library/nginx'), 'u:old'),
    );
  }
});

test("a more specific entry of the node does not overrule the namespace's", () => {
  const node = {
    credHelpers: { 'mirror.example.com': 'ecr-login', 'docker.io': 'hub', 'other.example.com': 'gcr' },
    auths: {
      'mirror.example.com/hub': auth('node:node'),
      'docker.io': { ...auth('k:k'), email: 'e' },
      'keep.io': auth('o:o'),
    },
  };
  return run({ files: { globalAuth: JSON.stringify(node) } }, ({ auths, node: { options } }) => {
    assert.equal(oracleLookup(auths, 'mirror.example.com/hub/library/nginx'), 'u:p');
    assert.deepEqual(auths['docker.io'], { ...auth('k:k'), email: 'e' });
    assert.deepEqual(Object.keys(auths).sort(), ['docker.io', 'mirror.example.com']);
    const [name = ''] = readdirSync(options.authDir);
    const whole = JSON.parse(authFiles({ folder: '', options, remove: () => undefined })[name]?.text ?? '');
    assert.deepEqual(whole.credHelpers, { 'docker.io': 'hub' });
  });
});

test('a broken or unreadable file of the node does not take the namespace down', async () => {
  for (const globalAuth of ['', 'nope', '[]', '{"auths":[]}'])
    await run({ files: { globalAuth } }, ({ exitCode, auths, log }) => {
      assert.equal(exitCode, 0);
      assert.equal(oracleLookup(auths, 'mirror.example.com/hub/library/nginx'), 'u:p');
      assert.match(log.join('\n'), /going on without it/);
    });
});

test.asRoot('the owner of an old file does not own the credentials that take its place', () =>
  run(
    {
      files: { authDirMode: 0o700, existing: { [LEFT]: '{}' } },
      prepare: (node) => chownSync(join(node.options.authDir, LEFT), 65_534, 65_534),
    },
    ({ node }) => {
      assert.equal(statSync(join(node.options.authDir, LEFT)).uid, 0);
      assert.equal(authFiles(node)[LEFT]?.mode, 0o600);
    },
  ),
);

test('a thousand bad secrets are a few lines', () => {
  const secrets = Array.from({ length: 1000 }, (_, index) =>
    pullSecret(`bad-${index}`, { 'mirror.example.com': { auth: '!' } }),
  );
  return run({ api: { secrets } }, ({ exitCode, log }) => {
    assert.equal(exitCode, 0);
    assert.ok(log.length <= 20, log.join('\n'));
  });
});
