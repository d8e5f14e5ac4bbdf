// deadline: 120 s
/** What the provider says and does when something is wrong: every row still lets a pull succeed that could succeed. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { makeCertificates } from '../support/certificates.ts';
import { type Case, suite, table } from '../support/suite.ts';
import { startApi } from './support/api-double.ts';
import { makeNode, type NodeFiles, requestFor, runOn, tokenFor } from './support/node-double.ts';
import { auth, CONF, IMAGE, run, SECRET, type Setup } from './support/one-run.ts';

const test = suite('provider in trouble');

interface Trouble extends Case {
  readonly setup: Setup;
  readonly exitCode: number;
  readonly says: RegExp;
}

const expired = makeCertificates({ notAfter: new Date(Date.now() - 60_000) });
const covered: NodeFiles = {
  globalAuth: JSON.stringify({ auths: { 'mirror.example.com': auth('node:node') } }),
};

const troubles: readonly Trouble[] = [
  {
    name: 'no right to read secrets',
    reason: 'the line holds the Role to apply',
    setup: { api: { mode: 403 } },
    exitCode: 1,
    says: /kubectl apply -f - .*"kind":"Role".*"resourceNames":\["NAME-OF-THE-PULL-SECRET"\],"verbs":\["get"\].*"name":"app"/,
  },
  {
    name: 'no right, and the pod names its secrets',
    reason: 'the Role has their names and nothing else',
    setup: {
      api: { mode: 'forbid-secrets', pods: { 'web-0': ['mirror'] }, serviceAccounts: { app: ['b'] } },
    },
    exitCode: 1,
    says: /"rules":\[\{"apiGroups":\[""\],"resources":\["secrets"\],"resourceNames":\["mirror","b"\],"verbs":\["get"\]\}\]/,
  },
  {
    name: 'a request of another kind',
    reason: 'one line says what is wanted',
    setup: {
      stdin:
        '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","image":"docker.io/library/nginx"}',
    },
    exitCode: 1,
    says: /invalid kind: must be CredentialProviderRequest/,
  },
  {
    name: 'a request of a version to come',
    reason: 'its answer would be refused',
    setup: {
      stdin: requestFor(IMAGE, undefined).replace('k8s.io/v1"', 'k8s.io/v2"'),
    },
    exitCode: 1,
    says: /invalid apiVersion: must be credentialprovider\.kubelet\.k8s\.io\/v1/,
  },
  {
    name: 'no right, but the node can pull',
    reason: 'never worse than without the provider',
    setup: { api: { mode: 403 }, files: covered },
    exitCode: 0,
    says: /Going on with the node's own auth file/,
  },
  {
    name: 'token of another audience',
    reason: '401 names the audience',
    setup: { api: { mode: 401 } },
    exitCode: 0,
    says: /audience/,
  },
  {
    name: 'server error',
    reason: 'one retry, then a clear end',
    setup: { api: { mode: 500 } },
    exitCode: 0,
    says: /Internal error occurred/,
  },
  {
    name: 'connection reset',
    reason: 'the address is named',
    setup: { api: { mode: 'reset' } },
    exitCode: 0,
    says: /cannot be reached/,
  },
  {
    name: 'no answer',
    reason: 'the budget ends before the kubelet kills',
    setup: { api: { mode: 'hang' }, options: { options: { budgetMs: 300 } } },
    exitCode: 0,
    says: /no answer within the budget/,
  },
  {
    name: 'certificate of another CA',
    reason: 'nothing is sent to a server that is not verified',
    setup: { files: { ca: makeCertificates().ca } },
    exitCode: 0,
    says: /certificate of the API server does not come from the CA/,
  },
  {
    name: 'no CA',
    reason: 'no request without verification',
    setup: { files: { ca: 'not PEM' } },
    exitCode: 0,
    says: /no CA to verify the API server with/,
  },
  {
    name: 'port that is none',
    reason: 'the env file is named',
    setup: { files: { apiServerEnv: 'KUBERNETES_SERVICE_HOST=a\nKUBERNETES_SERVICE_PORT=x\n' } },
    exitCode: 0,
    says: /apiserver-url\.env/,
  },
  {
    name: 'drop-in half written',
    reason: 'the runtime refuses it too',
    setup: { files: { registriesConf: CONF, dropins: { '10-a.conf': '[[registry]]\nlocation = "do' } } },
    exitCode: 1,
    says: /10-a\.conf/,
  },
  {
    name: 'auth folder is a file',
    reason: 'the path and the state are named',
    setup: { prepare: (node) => writeFileSync(node.options.authDir, '') },
    exitCode: 1,
    says: /unable to create auth file/,
  },
  {
    name: 'stdin empty',
    reason: 'as the kubelet never does',
    setup: { stdin: '' },
    exitCode: 1,
    says: /unable to parse credential provider request from stdin/,
  },
  {
    name: 'token of two parts',
    reason: 'malformed',
    setup: { stdin: requestFor(IMAGE, 'a.b') },
    exitCode: 1,
    says: /unable to extract namespace/,
  },
  {
    name: 'token with other bytes',
    reason: 'malformed',
    setup: { stdin: requestFor(IMAGE, 'ä.😀.c') },
    exitCode: 1,
    says: /unable to extract namespace/,
  },
  {
    name: 'namespace with a slash',
    reason: 'it would leave the folder',
    setup: { stdin: requestFor(IMAGE, tokenFor('../etc')) },
    exitCode: 1,
    says: /cannot be one/,
  },
  {
    name: 'namespace of 64 letters',
    reason: 'no such namespace exists',
    setup: { stdin: requestFor(IMAGE, tokenFor('a'.repeat(64))) },
    exitCode: 1,
    says: /cannot be one/,
  },
];
table(test, troubles, ({ setup, exitCode, says }) =>
  run(setup, (seen) => {
    assert.equal(seen.exitCode, exitCode, seen.log.join('\n'));
    assert.match(seen.log.join('\n'), says);
    assert.equal(seen.stdout === '', exitCode === 1);
    assert.ok(!seen.log.some((line) => line.includes(tokenFor('team-a'))), 'the token is in the log');
  }),
);

test('an expired certificate is refused', async () => {
  const api = await startApi({ secrets: [SECRET] }, { certificates: expired });
  const node = makeNode({
    registriesConf: CONF,
    apiServerEnv: `KUBERNETES_SERVICE_HOST=127.0.0.1\nKUBERNETES_SERVICE_PORT=${api.port}\n`,
    ca: api.ca,
  });
  const { exitCode, log } = await runOn(node, requestFor(IMAGE, tokenFor('team-a')));
  assert.equal(exitCode, 0);
  assert.match(log.join('\n'), /CERT_HAS_EXPIRED/);
  assert.equal(api.requests.length, 0);
  node.remove();
  await api.close();
});

test.run();
