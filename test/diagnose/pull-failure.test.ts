/** Causes and hosts of messages that the conformance cases do not have. */
import assert from 'node:assert/strict';
import { pullFailure } from '../../runtime/diagnose/model/pull-failure.ts';
import { test } from '../support/suite.ts';

const BLOB = 'failed to copy: httpReadSeeker: failed open: ';
const ANONYMOUS =
  'failed to authorize: failed to fetch anonymous token: unexpected status from GET request to ';
const both = (first: string, second: string): string =>
  `[failed to pull and unpack image "reg.io/a/b:1": ${first}, failed to pull and unpack image "reg.io/a/b:1": ${second}]`;

const rows: readonly (readonly [name: string, said: string, cause: string, host?: string])[] = [
  [
    'the first credential reached the layers, so it was accepted',
    both(
      `${BLOB}failed to do request: Get "https://blob.example.com/data?x=1": EOF`,
      `${ANONYMOUS}https://reg.io/token?x=1: 401 Unauthorized`,
    ),
    'connection-broken',
    'blob.example.com',
  ],
  [
    'the reason of a status in capitals',
    'unexpected status from HEAD request to https://reg.io/v2/a/b/manifests/1: 504 GATEWAY TIMEOUT',
    'registry-error',
    'reg.io',
  ],
  [
    'the same for a token',
    `${ANONYMOUS}https://reg.io/v2/auth?scope=x: 401 UNAUTHORIZED`,
    'no-credential',
    'reg.io',
  ],
  [
    'an XML answer of a blob store, whose words are not those of the registry',
    'error pulling image configuration: error parsing HTTP 403 response body: invalid character \'ï\' looking for beginning of value: "\\ufeff<?xml version=\\"1.0\\"?><Error><Message>This request is not authorized to perform this operation."',
    'unexpected-answer',
    'reg.io',
  ],
  [
    'a manifest that Docker cannot verify',
    'manifest verification failed for digest sha256:abc',
    'digest-mismatch',
    'reg.io',
  ],
  [
    'a token service without a token',
    'failed to fetch anonymous token: authorization server did not include a token in the response',
    'unexpected-answer',
    'reg.io',
  ],
  [
    'a layer that another pull locks',
    'ref layer-sha256:abc locked for 14.301s (since 2026-01-01)',
    'node-storage',
  ],
  [
    'a token of Artifactory',
    'unauthorized: Token failed verification: expired',
    'credential-expired',
    'reg.io',
  ],
  [
    'the host that containerd 1.6 read from',
    'pulling from host mirror.io failed with status code [manifests 1]: 401 Unauthorized',
    'auth-required',
    'mirror.io',
  ],
  [
    'a SOCKS proxy',
    'Head "https://reg.io/v2/": socks connect tcp 127.0.0.1:1080->reg.io:443: dial tcp 127.0.0.1:1080: connect: connection refused',
    'proxy',
    '127.0.0.1:1080',
  ],
];

for (const [name, message, cause, host] of rows)
  test(name, () => {
    const found = pullFailure({ image: 'reg.io/a/b:1', reason: 'ErrImagePull', message }, []);
    assert.deepEqual([found?.cause, found?.host], [cause, host]);
  });

test('the error of the image of a sandbox under CRI-O has no prefix of its own', () => {
  for (const [said, cause] of [
    ['reading manifest 3.10 in registry.k8s.io/pause: manifest unknown', 'not-found'],
    ['name "k8s_app-0" is reserved for another pod', undefined],
  ] as const) {
    const message = `Failed to create pod sandbox: rpc error: code = Unknown desc = error creating pod sandbox with name "k8s_app-0": ${said}`;
    const events = [{ reason: 'FailedCreatePodSandBox', message }];
    assert.equal(pullFailure({ image: 'reg.io/a/b:1', reason: 'ContainerCreating' }, events)?.cause, cause);
  }
});
