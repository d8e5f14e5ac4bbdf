/** Selection of cluster, user and namespace: files, KUBECONFIG with several, the home folder, contexts. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '../../runtime/core/errors.ts';
import { reveal } from '../../runtime/core/redacted.ts';
import { contextNamespace, loadConnection } from '../../runtime/kube/kubeconfig.ts';
import { fileFailure, podConnection } from '../../runtime/kube/pod-connection.ts';
import { plantedPassword } from '../support/canary.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const home = join(folder, 'home');
mkdirSync(join(home, '.kube'), { recursive: true });
mkdirSync(join(folder, 'elsewhere'));

/** A kubeconfig with one cluster, user and context of one name. */
function written(path: string, name: string, more: Record<string, unknown> = {}): string {
  const file = join(folder, path);
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server: `https://${name}.example.com` } }],
    users: [{ name, user: { token: plantedPassword(name) } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: `of-${name}` } }],
    ...more,
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

const a = written('a', 'alpha');
const b = written('b', 'beta');
written('home/.kube/config', 'own');
/** Names what alpha names, with another server; and no current context. */
const again = written('again', 'alpha', {
  'current-context': '',
  clusters: [{ name: 'alpha', cluster: { server: 'https://other.example.com' } }],
  contexts: [{ name: 'second', context: { cluster: 'alpha', user: 'alpha' } }],
});
const none = join(folder, 'none');
const POD = { KUBERNETES_SERVICE_HOST: '10.0.0.1' };

interface Row extends Case {
  readonly file?: string;
  readonly env: Record<string, string>;
  readonly context?: string;
  readonly server: string;
  /** @default {the one of a context of the server's name} */
  readonly namespace?: string;
}

const rows: readonly Row[] = [
  {
    name: 'takes the file that is named',
    reason: 'a flag is stronger than the environment',
    file: a,
    env: { KUBECONFIG: b, HOME: home },
    server: 'alpha',
  },
  {
    name: 'takes KUBECONFIG before the home folder and the pod',
    reason: 'whoever sets it means it, in a pipeline too',
    env: { KUBECONFIG: b, HOME: home, ...POD },
    server: 'beta',
  },
  {
    name: 'takes ~/.kube/config without KUBECONFIG',
    reason: 'it is where kubectl looks',
    env: { HOME: home },
    server: 'own',
  },
  {
    name: 'takes the home folder of Windows that has one',
    reason: 'kubectl does, and HOME is often that of another program',
    env: { HOME: folder, HOMEDRIVE: home.slice(0, 2), HOMEPATH: home.slice(2), USERPROFILE: folder },
    server: 'own',
  },
  {
    name: 'passes over files of a list that are not there',
    env: { KUBECONFIG: `${none}:${b}` },
    server: 'beta',
  },
  {
    name: 'lets the first file of a list decide',
    reason: 'the current context and names that are there twice are those of the first',
    env: { KUBECONFIG: `${a}:${again}:${b}` },
    server: 'alpha',
  },
  {
    name: 'takes the current context of the first file that has one',
    reason: 'a file may hold clusters alone',
    env: { KUBECONFIG: `${again}:${b}` },
    server: 'beta',
  },
  {
    name: 'takes the context that is named, out of any file',
    reason: 'one command may ask another cluster',
    env: { KUBECONFIG: `${a}:${b}` },
    context: 'beta',
    server: 'beta',
  },
  {
    name: 'looks in "default" where a context names no namespace',
    env: { KUBECONFIG: again },
    context: 'second',
    server: 'other',
    namespace: 'default',
  },
];

table(test, rows, async ({ file, env, context, server, namespace = `of-${server}` }) => {
  const connection = await loadConnection(file, env, context);
  assert.equal(connection.server, `https://${server}.example.com`);
  assert.equal(await contextNamespace({ kubeconfig: file, context }, env), namespace);
});

test('reads the token file of a user beside the file that names the user', async () => {
  // If both are set, client-go uses the file.
  const users = [{ name: 'gamma', user: { tokenFile: 'token', token: plantedPassword('gamma') } }];
  const c = written('elsewhere/c', 'gamma', { users });
  const token = plantedPassword('token');
  writeFileSync(join(folder, 'elsewhere/token'), token);
  const connection = await loadConnection(undefined, { KUBECONFIG: `${a}:${c}` }, 'gamma');
  const credentials = await connection.credentials(false);
  assert.equal(credentials.token === undefined ? '' : reveal(credentials.token), token);
});

const delta = (token: string): Record<string, unknown> => ({
  clusters: ['delta', 'other'].map((name) => ({ name, cluster: { server: `https://${name}.example.com` } })),
  contexts: ['delta', 'other'].map((name) => ({ name, context: { cluster: name, user: name } })),
  users: ['delta', 'other'].map((name) => ({ name, user: { token: plantedPassword(`${name}${token}`) } })),
});
const changed = [
  ['reads a token that was renewed', {}, 'delta2'],
  ['stays with its context when another becomes the current one', { 'current-context': 'other' }, 'delta2'],
  ['stays with its context when none is the current one', { 'current-context': '' }, 'delta2'],
  ['keeps its token when its context is removed', { contexts: [], 'current-context': '' }, 'delta'],
  ['keeps its token when its user is removed', { users: [] }, 'delta'],
  [
    'keeps its token when its context names another server',
    { clusters: [{ name: 'delta', cluster: { server: 'https://other.example.com' } }] },
    'delta',
  ],
] as const;

// A token is sent to its own cluster alone, and no request is anonymous for what changes in the file.
for (const isAsked of [true, false])
  for (const [name, change, token] of changed)
    test(`${name}${isAsked ? '' : ', asked for the first time'}`, async () => {
      const { credentials } = await loadConnection(written('changed', 'delta', delta('')), {});
      if (isAsked) await credentials(false);
      written('changed', 'delta', { ...delta('2'), ...change });
      const answer = await credentials(true);
      assert.equal(answer.token === undefined ? '' : reveal(answer.token), plantedPassword(token));
    });

const clusterWith = (fields: object): Record<string, string> => ({
  KUBECONFIG: written(Object.keys(fields).join(), 'x', {
    clusters: [{ name: 'x', cluster: { server: 'https://x.example.com', ...fields } }],
  }),
});
const refused = [
  {
    name: 'says where it looked',
    reason: 'whoever has no cluster must know what to give',
    env: { HOME: folder },
    message:
      /^Cannot find a cluster: expected --kubeconfig FILE, KUBECONFIG, ~\/\.kube\/config, or to run in a pod$/,
  },
  {
    name: 'says that a file is not there',
    reason: 'a list of files that are all missing is a mistake',
    env: { KUBECONFIG: none },
    message: /^Cannot read kubeconfig ".*none": not found$/,
  },
  {
    name: 'names the contexts that there are',
    reason: 'a name is mistyped at night',
    env: { KUBECONFIG: `${a}:${b}` },
    context: 'gama',
    message: /^Cannot use context "gama": the kubeconfig has "alpha", "beta"$/,
  },
  {
    name: 'says that there is no current context',
    reason: 'it is chosen by hand',
    env: { KUBECONFIG: again },
    message: /it has no current context; choose one with --context: "second"$/,
  },
  {
    name: 'talks to no server without looking at its certificate',
    reason: 'whoever stands between would be given the token',
    env: clusterWith({ 'insecure-skip-tls-verify': true }),
    message: /insecure-skip-tls-verify is set, expected certificate-authority-data$/,
  },
  {
    name: 'talks to no server without TLS',
    reason: 'the token would go over the wire in clear',
    env: clusterWith({ server: 'http://x.example.com' }),
    message: /its server must be https$/,
  },
  {
    name: 'takes no token of a provider that kubectl would refresh',
    reason: 'an exec plugin does the same, and is where providers are going',
    env: {
      KUBECONFIG: written('provider', 'x', {
        users: [{ name: 'x', user: { 'auth-provider': { name: 'oidc', config: {} } } }],
      }),
    },
    message: /its auth-provider "oidc" is not supported, expected an exec plugin$/,
  },
  {
    name: 'goes through no proxy of another kind',
    reason: 'what cannot be used is said, and not passed over',
    env: clusterWith({ 'proxy-url': 'socks5://p.example.com' }),
    message: /its proxy-url must be http or https$/,
  },
];

table(test, refused, async ({ env, context, message }: (typeof refused)[number]) => {
  await assert.rejects(loadConnection(undefined, env, context), (error: unknown) => {
    assert.ok(error instanceof UsageError, String(error));
    assert.match(error.message, message);
    return true;
  });
});

test('a file of the pod that cannot be read is named, with the reason and what to check', () => {
  const message = 'Cannot read "/dev/null/ca.crt": the system returned ENOTDIR';
  const hint = 'Check that the file exists and that the user of this process may read it';
  assert.throws(() => podConnection({ KUBERNETES_SERVICE_HOST: '::1' }, '/dev/null'), { message, hint });
  assert.equal(fileFailure(Object.assign(new Error(), { code: 'EPERM' }), ''), 'permission denied');
});
