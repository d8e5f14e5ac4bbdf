/** Selection of requests that go through a proxy. */
import assert from 'node:assert/strict';
import { reveal } from '../../runtime/core/redacted.ts';
import { proxyFor } from '../../runtime/http/proxy.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Row extends Case {
  readonly url?: string;
  /** @default HTTPS_PROXY, and `without` as NO_PROXY */
  readonly env?: Readonly<Record<string, string>>;
  readonly without?: string;
  readonly proxy: string | undefined;
}

const P = 'http://proxy.example.com:3128';
const ROWS: readonly Row[] = [
  { name: 'no variable', reason: 'the default is direct', env: {}, proxy: undefined },
  { name: 'HTTPS_PROXY', env: { HTTPS_PROXY: P }, proxy: P },
  { name: 'lower case', reason: 'curl and Go take both', env: { https_proxy: P }, proxy: P },
  { name: 'HTTP_PROXY alone', reason: 'it is for http', env: { HTTP_PROXY: P }, proxy: undefined },
  { name: 'without scheme', reason: 'Go adds http', env: { HTTPS_PROXY: 'p:1' }, proxy: 'http://p:1' },
  { name: '*', reason: 'nothing is proxied', without: '*', proxy: undefined },
  { name: 'a domain', reason: 'covers its hosts', without: 'example.com', proxy: undefined },
  { name: 'a suffix of a name', reason: 'ample.com is another domain', without: 'ample.com', proxy: P },
  {
    name: 'a dotted suffix',
    reason: 'the form of Kubernetes',
    without: '.svc, .example.com',
    proxy: undefined,
  },
  {
    name: 'another port',
    reason: 'an entry with a port is for that port',
    without: 'api.example.com:443',
    proxy: P,
  },
  { name: 'the port', reason: 'it is excluded', without: 'api.example.com:6443', proxy: undefined },
  {
    name: 'a range',
    reason: 'pods speak to 172.30.0.1',
    url: 'https://172.30.0.1',
    without: '172.30.0.0/16',
    proxy: undefined,
  },
  { name: 'outside the range', url: 'https://172.31.0.1', without: '172.30.0.0/16', proxy: P },
  {
    name: 'an IPv6 range',
    reason: 'dual stack',
    url: 'https://[fd02::1]:6443',
    without: 'fd02::/112',
    proxy: undefined,
  },
  { name: 'loopback', reason: 'never proxied', url: 'https://127.0.0.1:6443', proxy: undefined },
  { name: 'a broken range', reason: 'is no exclusion and no crash', without: '10.0.0.0/99,x/y', proxy: P },
];

table(test, ROWS, ({ url = 'https://api.example.com:6443', env, without = '', proxy }) => {
  const found = proxyFor(url, env ?? { HTTPS_PROXY: P, NO_PROXY: without });
  assert.equal(found && reveal(found), proxy);
});
