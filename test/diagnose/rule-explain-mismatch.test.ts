/** Keys with stars that were meant for a host and do not match it. */
import assert from 'node:assert/strict';
import { explainMismatch } from '../../runtime/diagnose/model/attempts.ts';
import { suite, table } from '../support/suite.ts';

const test = suite('explainMismatch() and stars');

const rows = [
  {
    name: 'a deeper host',
    reason: 'people take a star for any number of parts',
    key: '*.example.com',
    image: 'a.b.example.com/x',
    near: 'host',
    why: /^a star stands for one part .*"\*\.example\.com" is not for "a\.b\.example\.com"$/,
  },
  {
    name: 'the domain itself',
    reason: 'likewise',
    key: '*.example.com',
    image: 'example.com/x',
    near: 'host',
    why: /^a star stands for one part/,
  },
  {
    name: 'a port',
    reason: 'the host matches, the port does not',
    key: '*.example.com',
    image: 'a.example.com:5000/x',
    near: 'host',
    why: /^ports are compared/,
  },
  {
    name: 'a path',
    reason: 'the host matches, the path does not',
    key: '*.example.com/team',
    image: 'a.example.com/x',
    near: 'host',
    why: /not below "\/team"/,
  },
  {
    name: 'another domain',
    reason: 'nobody meant it',
    key: '*.example.com',
    image: 'quay.io/x',
    near: 'other',
    why: /another registry|a star/,
  },
  {
    name: 'a star alone',
    reason: 'it is meant for nothing that could be told',
    key: '*',
    image: 'quay.io/x',
    near: 'other',
    why: /a star/,
  },
] as const;

table(test, rows, ({ key, image, near, why }) => {
  const mismatch = explainMismatch(key, image);
  assert.equal(mismatch.near, near);
  assert.match(mismatch.why, why);
});

test.run();
