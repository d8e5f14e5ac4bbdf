/** Allowed content of a kubeconfig from a Secret. */
import assert from 'node:assert/strict';
import { PullwrightError } from '../../runtime/core/errors.ts';
import { redact, reveal } from '../../runtime/core/redacted.ts';
import { connectionFromSecret } from '../../runtime/kube/kubeconfig-from-secret.ts';
import { kubeconfigOf } from '../control-plane/users.ts';
import { plantedPassword } from '../support/canary.ts';
import { type Case, table, test } from '../support/suite.ts';

const open = (text: string): ReturnType<typeof connectionFromSecret> =>
  connectionFromSecret({ subject: 'Secret/ns/admin-kubeconfig', text: redact(text) });

const CLUSTER = { server: 'https://api.example.com:6443', 'certificate-authority-data': 'Q0E=' };

test('takes an https server with inline CA, certificate, key and token', async () => {
  const connection = open(
    kubeconfigOf(CLUSTER, {
      'client-certificate-data': 'Q0VSVA==',
      'client-key-data': 'S0VZ',
      token: plantedPassword('t'),
    }),
  );
  assert.equal(connection.ca, 'CA');
  const { certificate, key, token } = await connection.credentials(false);
  assert.equal(certificate, 'CERT');
  assert.equal(key === undefined ? undefined : reveal(key), 'KEY');
  assert.equal(token === undefined ? undefined : reveal(token), plantedPassword('t'));
});

interface Refusal extends Case {
  readonly text: string;
  readonly says: RegExp;
}

const REFUSED: readonly Refusal[] = [
  ...[
    'exec',
    'auth-provider',
    'tokenFile',
    'client-certificate',
    'client-key',
    'username',
    'password',
    'as',
  ].map(
    (field): Refusal => ({
      name: `user.${field}`,
      reason: 'it would read files, run programs, or be somebody else',
      text: kubeconfigOf(CLUSTER, { [field]: plantedPassword(field) }),
      says: new RegExp(`user\\.${field} is not allowed`),
    }),
  ),
  ...['certificate-authority', 'insecure-skip-tls-verify', 'proxy-url'].map(
    (field): Refusal => ({
      name: `cluster.${field}`,
      reason: 'it would read files, or send credentials where they do not belong',
      text: kubeconfigOf({ ...CLUSTER, [field]: plantedPassword(field) }, {}),
      says: new RegExp(`cluster\\.${field} is not allowed`),
    }),
  ),
  {
    name: 'a field that no kubeconfig has',
    reason: 'a token whose "token:" was forgotten stands there as one',
    text: kubeconfigOf(CLUSTER, { [plantedPassword('forgotten')]: '' }),
    says: /user\.\(unknown field\) is not allowed/,
  },
  {
    name: 'a server without TLS',
    reason: 'the token would go over the wire in clear',
    text: kubeconfigOf({ ...CLUSTER, server: 'http://api.example.com' }, {}),
    says: /server must be https/,
  },
  {
    name: 'a user name in the server',
    reason: 'a URL is shown in messages',
    text: kubeconfigOf({ ...CLUSTER, server: `https://u:${plantedPassword('url')}@api.example.com` }, {}),
    says: /server must not contain a user name/,
  },
  { name: 'no context', reason: 'there is nothing to use', text: '{}', says: /current-context/ },
  {
    name: 'no YAML',
    reason: 'it is what somebody pasted',
    text: `: [${plantedPassword('yaml')}`,
    says: /not valid YAML/,
  },
  { name: 'a list', reason: 'it is no kubeconfig', text: '[]', says: /it must be an object/ },
];

table(test, REFUSED, ({ text, says }) => {
  assert.throws(
    () => open(text),
    (error) => {
      assert.ok(error instanceof PullwrightError);
      assert.equal(error.code, 'KubeconfigRefused');
      assert.match(error.message, says);
      assert.match(error.message, /Secret\/ns\/admin-kubeconfig/);
      assert.equal(error.message.includes(plantedPassword('')), false);
      return true;
    },
  );
});

test('insecure-skip-tls-verify: false says nothing, and is taken', () => {
  assert.equal(
    open(kubeconfigOf({ ...CLUSTER, 'insecure-skip-tls-verify': false }, {})).server,
    CLUSTER.server,
  );
});
