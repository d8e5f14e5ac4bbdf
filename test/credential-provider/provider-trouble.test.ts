// deadline: 120 s
/** Errors of the provider: in every row, a pull that can succeed without it still does. */
import assert from 'node:assert/strict';
import { type Cases, cases, test } from '../support/suite.ts';
import { type NodeFiles, requestFor, tokenFor } from './support/node-double.ts';
import { auth, CONF, IMAGE, run, type Setup } from './support/one-run.ts';

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
    {
      stdin: requestFor(IMAGE, undefined).replace('k8s.io/v1"', 'k8s.io/v2"'),
    },
    1,
    /invalid apiVersion: must be credentialprovider\.kubelet\.k8s\.io\/v1/,
  ],
  [
    'no right, but the node can pull',
    'never worse than without the provider',
    { api: { mode: 403 }, files: covered },
    0,
    /Going on with the node's own auth file/,
  ],
  ['token of another audience', '401 names the audience', { api: { mode: 401 } }, 0, /audience/],
  [
    'no CA',
    'no request without verification',
    { files: { ca: 'not PEM' } },
    0,
    /no CA to verify the API server with/,
  ],
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
    /cannot be one/,
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
