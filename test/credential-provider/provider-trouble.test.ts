// deadline: 120 s
/** What the provider says and does when something is wrong: every row still lets a pull succeed that could succeed. */
import assert from 'node:assert/strict';
import { type Case, table, test } from '../support/suite.ts';
import { type NodeFiles, requestFor, tokenFor } from './support/node-double.ts';
import { auth, CONF, IMAGE, run, type Setup } from './support/one-run.ts';

interface Trouble extends Case {
  readonly setup: Setup;
  readonly exitCode: number;
  readonly says: RegExp;
}

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
    name: 'stdin empty',
    reason: 'as the kubelet never does',
    setup: { stdin: '' },
    exitCode: 1,
    says: /unable to parse credential provider request from stdin/,
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
