// deadline: 120 s
/** One run of the provider: auth file, response and log. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chownSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sweepAuthFiles } from '../../runtime/credential-provider/plugin/run.ts';
import { defaultOptions } from '../../runtime/credential-provider/provider-flags.ts';
import { type Cases, cases, test } from '../support/suite.ts';
import type { ApiState } from './support/api-double.ts';
import { oracleLookup } from './support/crio-oracle.ts';
import {
  authFiles,
  type NodeFiles,
  PATIENT_MS,
  pullSecret,
  requestFor,
  tokenFor,
} from './support/node-double.ts';
import { auth, CONF, IMAGE, LEFT, run, type Setup } from './support/one-run.ts';

/** The answer that keeps an image private: no credential for it. */
const PRIVATE = { [IMAGE]: { username: '', password: '' } };

test('writes for the mirror, keeps the image private, asks once', () =>
  run({}, ({ exitCode, stdout, auths, paths }) => {
    assert.equal(exitCode, 0);
    assert.equal(oracleLookup(auths, 'mirror.example.com/hub/library/nginx'), 'u:p');
    assert.deepEqual(JSON.parse(stdout).auth, PRIVATE);
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
      assert.ok(log.some((line) => line.includes('Secrets conflict on "mirror.example.com"')));
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
  const secrets = [pullSecret('old', { 'mirror.example.com': auth('u:old') }, 'kubernetes.io/dockercfg')];
  await run({ api: { secrets } }, ({ auths }) =>
    assert.equal(oracleLookup(auths, 'mirror.example.com/hub/library/nginx'), 'u:old'),
  );
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
      assert.match(log.join('\n'), /ignoring it/);
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

// Existing auth files: which ones the provider keeps and removes, and its response when Secrets are not readable.

type Left = [setup: Setup, by: string | undefined, isKept: boolean];

const OWN = 'team-a/app';
const lefts: Cases<Left> = [
  [
    'nothing for the mirror any more',
    'what this account wrote would replace the node file',
    { api: { secrets: [] } },
    OWN,
    false,
  ],
  [
    'nothing for the mirror, and the file is of another account',
    'its pull may be about to come',
    { api: { secrets: [] } },
    'team-a/other',
    true,
  ],
  [
    'nothing for the mirror, and nobody has signed the file',
    'another program wrote it',
    { api: { secrets: [] } },
    undefined,
    true,
  ],
  [
    'forbidden',
    'a refusal to one pod says nothing about the file of another',
    { api: { mode: 403 } },
    'team-a/other',
    true,
  ],
  [
    'forbidden, and the file is its own',
    'a denial takes nothing away: the file ends with its time',
    { api: { mode: 403 } },
    OWN,
    true,
  ],
  ['token refused', 'nothing is known about the namespace', { api: { mode: 401 } }, OWN, true],
  ['no CA any more', 'nothing was asked, so nothing is known', { files: { ca: '' } }, OWN, true],
  ['API server away', 'another pull may be about to use the file', { api: { mode: 'reset' } }, OWN, true],
];
cases<Left>(test, lefts, (setup, by, isKept) => {
  const record = by === undefined ? {} : { 'pullwright.dev/record': { by } };
  const existing = { [LEFT]: JSON.stringify({ auths: {}, ...record }) };
  return run({ ...setup, files: { ...setup.files, authDirMode: 0o700, existing } }, ({ names, stdout }) => {
    assert.deepEqual(names, isKept ? [LEFT] : []);
    // CRI-O uses the remaining file: without the entry, the kubelet would record a pull without credentials.
    assert.deepEqual(JSON.parse(stdout).auth, isKept ? PRIVATE : undefined);
  });
});

test.asRoot('a write that fails leaves the file that is there', () =>
  run(
    {
      files: { authDirMode: 0o700, existing: { [LEFT]: '{"auths":{"good.example.com":{}}}' } },
      // A file system without room for another file.
      prepare: ({ options }) => {
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'nr_inodes=2,mode=700', 'tmpfs', options.authDir]);
        writeFileSync(join(options.authDir, LEFT), '{"auths":{"good.example.com":{}}}', { mode: 0o600 });
      },
    },
    ({ exitCode, log, auths, node }) => {
      execFileSync('umount', [node.options.authDir]);
      assert.equal(exitCode, 1, log.join('\n'));
      assert.match(log.join('\n'), /unable to create auth file/);
      assert.deepEqual(auths, { 'good.example.com': {} });
    },
  ),
);

type Unread = [setup: Setup];

test('the budget that the kubelet waits for ends within two seconds', () => {
  assert.ok(defaultOptions(undefined).budgetMs < 2000);
});

const unread: Cases<Unread> = [
  ['away', 'connection reset', { api: { mode: 'reset' } }],
  ['hangs', 'no answer at all', { api: { mode: 'hang' } }],
  ['in trouble', 'a server error', { api: { mode: 500 } }],
  [
    'in trouble when a Secret is read by name',
    'an error is not an absent Secret',
    {
      api: { mode: 500 },
      stdin: requestFor(IMAGE, tokenFor('team-a'), { 'pullwright.dev/image-pull-secrets': 'mirror' }),
      options: { options: { secrets: 'named' } },
    },
  ],
  [
    'in trouble at the older types',
    'an error is not an empty list',
    { api: { mode: 'fail-older', secrets: [] } },
  ],
  ['does not know the token', 'it may have expired', { api: { mode: 401 } }],
  ['cannot be verified', 'no CA on the node', { files: { ca: '' } }],
];
cases<Unread>(test, unread, async (setup) => {
  const budgetMs = setup.api?.mode === 'hang' ? 600 : PATIENT_MS;
  const own = { ...setup.options?.options, budgetMs };
  await run({ ...setup, options: { options: own } }, ({ exitCode, stdout, names, log }) => {
    assert.equal(exitCode, 0);
    assert.deepEqual(JSON.parse(stdout).auth, PRIVATE);
    assert.deepEqual(names, []);
    assert.match(log.join('\n'), /Using the node's auth file: /);
  });
  const options = { ...own, keepImagesPrivate: false };
  await run({ ...setup, options: { options } }, ({ exitCode, stdout }) => {
    assert.equal(exitCode, 1);
    assert.equal(stdout, '');
  });
});

test('what no pull took is swept by the next run, of whichever pod it is', () => {
  const old = `team-b-${'0'.repeat(64)}.json`;
  const young = `team-c-${'0'.repeat(64)}.json`;
  return run(
    {
      files: { authDirMode: 0o700, existing: { [old]: '{}', [young]: '{}', 'other.json': '{}' } },
      prepare: ({ options }) => {
        const then = Date.now() / 1000 - 1801;
        for (const name of [old, 'other.json']) utimesSync(join(options.authDir, name), then, then);
      },
    },
    ({ node }) => {
      sweepAuthFiles(node.options.authDir);
      assert.deepEqual(Object.keys(authFiles(node)).sort(), ['other.json', LEFT, young].sort());
    },
  );
});

// Errors: in every row, a pull that can succeed without the provider still does.

type Trouble = [setup: Setup, exitCode: number, says: RegExp];

const covered: NodeFiles = {
  globalAuth: JSON.stringify({ auths: { 'mirror.example.com': auth('node:node') } }),
};

const troubles: Cases<Trouble> = [
  [
    'no right to read secrets',
    'the line holds the Role to apply',
    { api: { mode: 403 } },
    1,
    /kubectl apply -f - .*"kind":"Role".*"resourceNames":\["NAME-OF-THE-PULL-SECRET"\],"verbs":\["get"\].*"name":"app"/,
  ],
  [
    'no right, and the pod names its secrets',
    'the Role has their names and nothing else',
    {
      api: { mode: 'forbid-secrets', pods: { 'web-0': ['mirror'] }, serviceAccounts: { app: ['b'] } },
    },
    1,
    /"rules":\[\{"apiGroups":\[""\],"resources":\["secrets"\],"resourceNames":\["mirror","b"\],"verbs":\["get"\]\}\]/,
  ],
  [
    'a request of another kind',
    'one line says what is wanted',
    {
      stdin:
        '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","image":"docker.io/library/nginx"}',
    },
    1,
    /invalid kind: must be CredentialProviderRequest/,
  ],
  [
    'a request of a version to come',
    'its answer would be refused',
    { stdin: requestFor(IMAGE, undefined).replace('k8s.io/v1"', 'k8s.io/v2"') },
    1,
    /invalid apiVersion: must be credentialprovider\.kubelet\.k8s\.io\/v1/,
  ],
  [
    'no right, but the node can pull',
    'never worse than without the provider',
    { api: { mode: 403 }, files: covered },
    0,
    /Using the node's auth file/,
  ],
  ['token of another audience', '401 names the audience', { api: { mode: 401 } }, 0, /audience/],
  ['no CA', 'no request without verification', { files: { ca: 'not PEM' } }, 0, /no CA found/],
  [
    'port that is none',
    'the env file is named',
    { files: { apiServerEnv: 'KUBERNETES_SERVICE_HOST=a\nKUBERNETES_SERVICE_PORT=x\n' } },
    0,
    /apiserver-url\.env/,
  ],
  [
    'drop-in half written',
    'the runtime refuses it too',
    { files: { registriesConf: CONF, dropins: { '10-a.conf': '[[registry]]\nlocation = "do' } } },
    1,
    /10-a\.conf/,
  ],
  [
    'stdin empty',
    'as the kubelet never does',
    { stdin: '' },
    1,
    /unable to parse credential provider request from stdin/,
  ],
  [
    'namespace of 64 letters',
    'no such namespace exists',
    { stdin: requestFor(IMAGE, tokenFor('a'.repeat(64))) },
    1,
    /is invalid/,
  ],
];
cases<Trouble>(test, troubles, (setup, exitCode, says) =>
  run(setup, (seen) => {
    assert.equal(seen.exitCode, exitCode, seen.log.join('\n'));
    assert.match(seen.log.join('\n'), says);
    assert.equal(seen.stdout === '', exitCode === 1);
    assert.ok(!seen.log.some((line) => line.includes(tokenFor('team-a'))), 'the token is in the log');
  }),
);
