/** Causes and hosts of messages that the conformance cases do not have. */
import assert from 'node:assert/strict';
import { pullFailure } from '../../runtime/diagnose/model/pull-failure.ts';
import { type Case, table, test } from '../support/suite.ts';

const BLOB = 'failed to copy: httpReadSeeker: failed open: ';
const ANONYMOUS =
  'failed to authorize: failed to fetch anonymous token: unexpected status from GET request to ';
const both = (first: string, second: string): string =>
  `[failed to pull and unpack image "reg.io/a/b:1": ${first}, failed to pull and unpack image "reg.io/a/b:1": ${second}]`;

const rows: readonly (Case & { readonly said: string; readonly cause: string; readonly host?: string })[] = [
  {
    name: 'the first credential reached the layers',
    reason: 'it was accepted; the anonymous attempt after it shows nothing',
    said: both(
      `${BLOB}failed to do request: Get "https://blob.example.com/data?x=1": EOF`,
      `${ANONYMOUS}https://reg.io/token?x=1: 401 Unauthorized`,
    ),
    cause: 'connection-broken',
    host: 'blob.example.com',
  },
  {
    name: 'a status with a reason in capitals',
    reason: 'servers choose the reason',
    said: 'unexpected status from HEAD request to https://reg.io/v2/a/b/manifests/1: 504 GATEWAY TIMEOUT',
    cause: 'registry-error',
    host: 'reg.io',
  },
  {
    name: 'a status with a reason in lower case',
    reason: 'the same',
    said: `${ANONYMOUS}https://reg.io/v2/auth?scope=x: 401 UNAUTHORIZED`,
    cause: 'no-credential',
    host: 'reg.io',
  },
  {
    name: 'an XML answer of a blob store',
    reason: 'the words in it are not those of the registry',
    said: 'error pulling image configuration: error parsing HTTP 403 response body: invalid character \'ï\' looking for beginning of value: "\\ufeff<?xml version=\\"1.0\\"?><Error><Message>This request is not authorized to perform this operation."',
    cause: 'unexpected-answer',
    host: 'reg.io',
  },
  {
    name: 'a manifest that Docker cannot verify',
    reason: 'a proxy may alter it',
    said: 'Error response from daemon: manifest verification failed for digest sha256:abc',
    cause: 'digest-mismatch',
    host: 'reg.io',
  },
  {
    name: 'a token service without a token',
    reason: 'something else answers',
    said: 'failed to authorize: failed to fetch anonymous token: authorization server did not include a token in the response',
    cause: 'unexpected-answer',
    host: 'reg.io',
  },
  {
    name: 'a layer that another pull locks',
    reason: 'the content store of the node holds it',
    said: 'failed to copy: ref layer-sha256:abc locked for 14.301s (since 2026-01-01): unavailable',
    cause: 'node-storage',
  },
  {
    name: 'an expired token of Artifactory',
    reason: 'its own words',
    said: 'unauthorized: Token failed verification: expired',
    cause: 'credential-expired',
    host: 'reg.io',
  },
  {
    name: 'the host that containerd 1.6 read from',
    reason: 'a mirror answered, not the registry of the image',
    said: 'pulling from host mirror.io failed with status code [manifests 1]: 401 Unauthorized',
    cause: 'auth-required',
    host: 'mirror.io',
  },
  {
    name: 'a SOCKS proxy',
    reason: 'the node cannot connect to it',
    said: 'Head "https://reg.io/v2/": socks connect tcp 127.0.0.1:1080->reg.io:443: dial tcp 127.0.0.1:1080: connect: connection refused',
    cause: 'proxy',
    host: '127.0.0.1:1080',
  },
];

table(test, rows, ({ said, cause, host }) => {
  const found = pullFailure({ image: 'reg.io/a/b:1', reason: 'ErrImagePull', message: said }, []);
  assert.deepEqual([found?.cause, found?.host], [cause, host]);
});

const SANDBOX = 'error creating pod sandbox with name "k8s_app-0_web_5b1f_0": ';
const sandboxes: readonly (Case & { readonly said: string; readonly cause?: string })[] = [
  {
    name: 'the image of the sandbox under CRI-O',
    reason: 'its error has no other prefix',
    said: 'reading manifest 3.10 in registry.k8s.io/pause: manifest unknown',
    cause: 'not-found',
  },
  {
    name: 'the storage of a sandbox',
    reason: 'no pull fails',
    said: 'name "k8s_app-0" is reserved for another pod',
  },
];

table(test, sandboxes, ({ said, cause }) => {
  const message = `Failed to create pod sandbox: rpc error: code = Unknown desc = ${SANDBOX}${said}`;
  const wait = { image: 'reg.io/a/b:1', reason: 'ContainerCreating' };
  assert.equal(pullFailure(wait, [{ reason: 'FailedCreatePodSandBox', message }])?.cause, cause);
});
