import assert from 'node:assert/strict';
import fc from 'fast-check';
import { registryKey } from '../../runtime/core/docker-config/registry-key.ts';
import { forAll } from '../support/for-all.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Row extends Case {
  readonly meaning: string;
  /** @default the meaning */
  readonly portable?: string;
}

table<Row>(
  test,
  [
    { name: 'quay.io', reason: 'plain', meaning: 'quay.io' },
    { name: 'https://quay.io', reason: 'the kubelet drops the scheme', meaning: 'quay.io' },
    { name: 'HTTPS://quay.io', reason: 'a scheme has no case', meaning: 'quay.io' },
    { name: 'quay.io/', reason: 'a slash says nothing', meaning: 'quay.io' },
    { name: 'quay.io//team//', reason: 'nor do several', meaning: 'quay.io/team' },
    { name: 'https://quay.io/v1/', reason: 'address of the API', meaning: 'quay.io' },
    { name: 'https://quay.io/v2', reason: 'the same without slash', meaning: 'quay.io' },
    { name: 'quay.io/v2/team', reason: 'the kubelet drops /v2', meaning: 'quay.io/team' },
    { name: 'quay.io/v2', reason: 'without scheme it is a namespace', meaning: 'quay.io/v2' },
    { name: 'QUAY.io', reason: 'hosts have no case, look-ups do', meaning: 'quay.io', portable: 'QUAY.io' },
    {
      name: 'quay.io:443',
      reason: 'default port, but compared as text',
      meaning: 'quay.io',
      portable: 'quay.io:443',
    },
    { name: 'quay.io:8443/x', reason: 'another registry', meaning: 'quay.io:8443/x' },
    { name: 'quay.io:80', reason: 'not the default of TLS', meaning: 'quay.io:80' },
    { name: 'me:pw@quay.io/x', reason: 'the kubelet drops user info', meaning: 'quay.io/x' },
    { name: 'quay.io/x?a#b', reason: 'and query and fragment', meaning: 'quay.io/x' },
    { name: 'quay.io/%74eam', reason: 'and unescapes the path', meaning: 'quay.io/team' },
    { name: 'docker.io', reason: 'Docker Hub', meaning: 'docker.io' },
    { name: 'https://index.docker.io/v1/', reason: 'as docker login writes it', meaning: 'docker.io' },
    { name: 'index.docker.io/v1', reason: 'as people write it', meaning: 'docker.io' },
    { name: 'registry-1.docker.io/team', reason: 'the host behind it', meaning: 'docker.io/team' },
    { name: '[::1]:5000/a', reason: 'IPv6', meaning: '[::1]:5000/a' },
    { name: '*.quay.io', reason: 'a wildcard is kept', meaning: '*.quay.io' },
  ],
  ({ name, meaning, portable = meaning }) => {
    const key = registryKey(name);
    assert.deepEqual([key.meaning, key.portable, key.fault], [meaning, portable, undefined]);
  },
);

test('http with port 80 is held against both spellings', () => {
  assert.deepEqual(registryKey('http://quay.io:80').identities, ['quay.io:80', 'quay.io']);
});

table(
  test,
  [
    { name: '', reason: 'no registry', fault: /has no registry/ },
    { name: ' quay.io', reason: 'the kubelet refuses the blank', fault: /not a host|blanks/ },
    { name: 'qu ay.io', reason: 'a blank in a host', fault: /not a host/ },
    { name: 'quay.io:port', reason: 'a port is a number', fault: /not a host/ },
    { name: '[::1', reason: 'an open bracket', fault: /not a host/ },
    { name: 'quay.io/team/app:1', reason: 'images are compared without tag', fault: /tag or a digest/ },
    { name: 'http://quay.io/%09', reason: 'a tab, written as a URL does', fault: /control character/ },
    { name: 'https://quay.io/a%20b', reason: 'a blank, written as a URL does', fault: /blank/ },
    {
      name: 'http://quay.io/%3F',
      reason: 'the beginning of a query, written as a URL does',
      fault: /one of \? # %/,
    },
    { name: 'quay.io/Team', reason: 'no image has capitals', fault: /capital letters/ },
    { name: 'quay.io/*', reason: 'no wildcard in paths', fault: /wildcard in its path/ },
  ],
  ({ name, fault }) => assert.match(registryKey(name).fault ?? '', fault),
);

test('the portable spelling of a good key is its own portable spelling, with the same meaning', () => {
  forAll({}, fc.webUrl({ validSchemes: ['http', 'https'] }), (url) => {
    const key = registryKey(url);
    fc.pre(key.fault === undefined);
    const again = registryKey(key.portable);
    assert.equal(again.portable, key.portable);
    assert.ok(key.identities.includes(again.meaning));
  });
});

test('every text gives a key', () => {
  forAll({}, fc.string({ unit: 'binary' }), (text) => {
    const key = registryKey(text);
    assert.equal(key.written, text);
    assert.ok(key.identities.includes(key.meaning));
  });
});
