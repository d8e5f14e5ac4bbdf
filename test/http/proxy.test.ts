/** Selection of requests that go through a proxy. */
import assert from 'node:assert/strict';
import { reveal } from '../../runtime/core/redacted.ts';
import { proxyFor } from '../../runtime/http/proxy.ts';
import { type Cases, cases, test } from '../support/suite.ts';

const P = 'http://proxy.example.com:3128';
const NONE = undefined;
const without = (hosts: string) => ({ HTTPS_PROXY: P, NO_PROXY: hosts });
type Row = [env: Readonly<Record<string, string>>, proxy: string | undefined, url?: string];
const ROWS: Cases<Row> = [
  ['no variable', 'the default is direct', {}, NONE],
  ['HTTPS_PROXY', '', { HTTPS_PROXY: P }, P],
  ['lower case', 'curl and Go take both', { https_proxy: P }, P],
  ['HTTP_PROXY alone', 'it is for http', { HTTP_PROXY: P }, NONE],
  ['without scheme', 'Go adds http', { HTTPS_PROXY: 'p:1' }, 'http://p:1'],
  ['*', 'nothing is proxied', without('*'), NONE],
  ['a domain', 'covers its hosts', without('example.com'), NONE],
  ['a suffix of a name', 'ample.com is another domain', without('ample.com'), P],
  ['a dotted suffix', 'the form of Kubernetes', without('.svc, .example.com'), NONE],
  ['another port', 'an entry with a port is for that port', without('api.example.com:443'), P],
  ['the port', 'it is excluded', without('api.example.com:6443'), NONE],
  ['a range', 'pods speak to 172.30.0.1', without('172.30.0.0/16'), NONE, 'https://172.30.0.1'],
  ['outside the range', '', without('172.30.0.0/16'), P, 'https://172.31.0.1'],
  ['an IPv6 range', 'dual stack', without('fd02::/112'), NONE, 'https://[fd02::1]:6443'],
  ['loopback', 'never proxied', without(''), NONE, 'https://127.0.0.1:6443'],
  ['a broken range', 'is no exclusion and no crash', without('10.0.0.0/99,x/y'), P],
];

cases<Row>(test, ROWS, (env, proxy, url = 'https://api.example.com:6443') => {
  const found = proxyFor(url, env);
  assert.equal(found && reveal(found), proxy);
});
