import assert from 'node:assert/strict';
import { PullwrightError } from '../../runtime/core/errors.ts';
import { wantedDocument } from '../../runtime/global-pull-secret/agent/document.ts';
import { plantedPassword } from '../support/canary.ts';
import { type Case, table, test } from '../support/suite.ts';
import { readDocument as read, documentText as text } from './support/document.ts';

const planted = plantedPassword('document');

interface Same extends Case {
  readonly a: string;
  readonly b: string;
  /** @default {true} */
  readonly same?: boolean;
}

table(
  test,
  [
    {
      name: 'white space',
      reason: 'a compact copy is what nodes boot with',
      a: '{"auths":{"a":{"auth":"eDo="}}}',
      b: '{ "auths": {\n"a": {"auth":"eDo="} } }\n\n',
    },
    {
      name: 'order of registries',
      reason: 'a map has none',
      a: '{"auths":{"a":{},"b":{}}}',
      b: '{"auths":{"b":{},"a":{}}}',
    },
    {
      name: 'user name and password beside an auth',
      reason: 'kubectl writes all three, and who reads the file goes by auth',
      a: `{"auths":{"a":{"username":"u","password":"p","auth":"${Buffer.from('u:p').toString('base64')}"}}}`,
      b: `{"auths":{"a":{"auth":"${Buffer.from('u:p').toString('base64')}"}}}`,
    },
    {
      name: 'user name and password without an auth',
      reason: 'CRI-O cannot read these',
      a: '{"auths":{"a":{"username":"u","password":"p"}}}',
      b: `{"auths":{"a":{"auth":"${Buffer.from('u:p').toString('base64')}"}}}`,
      same: false,
    },
    {
      name: 'order of fields',
      reason: 'an object has none',
      a: '{"auths":{"a":{"auth":"eDo=","email":"y"}}}',
      b: '{"auths":{"a":{"email":"y","auth":"eDo="}}}',
    },
    {
      name: 'escapes',
      reason: 'JSON may write a character in two ways',
      a: '{"auths":{"a\\u002eb":{}}}',
      b: '{"auths":{"a.b":{}}}',
    },
    {
      name: 'null for no registry',
      reason: 'Go reads null as an empty map',
      a: '{"auths":null}',
      b: '{"auths":{}}',
    },
    {
      name: 'another password',
      reason: 'it is what must reach the node',
      a: '{"auths":{"a":{"auth":"eDo="}}}',
      b: '{"auths":{"a":{"auth":"eTo="}}}',
      same: false,
    },
    {
      name: 'another field',
      reason: 'CRI-O reads credHelpers',
      a: '{"auths":{}}',
      b: '{"auths":{},"credHelpers":{"a":"b"}}',
      same: false,
    },
    {
      name: 'a registry called __proto__',
      reason: 'a key like any other',
      a: '{"auths":{"__proto__":{"auth":"eDo="}}}',
      b: '{"auths":{}}',
      same: false,
    },
  ] satisfies Same[],
  ({ a, b, same = true }: Same) => assert.equal(read(a).digest === read(b).digest, same),
);

interface Bad extends Case {
  readonly text: string;
  readonly says: RegExp;
}

table(
  test,
  [
    { name: 'empty', reason: 'a truncated mount', text: '', says: /it is empty$/ },
    {
      name: 'truncated',
      reason: 'the parser quotes the text, we do not',
      text: `{"auths":{"a":{"auth":"${planted}"`,
      says: /it is not JSON: unexpected end of JSON input$/,
    },
    {
      name: 'without auths',
      reason: 'upstream refuses it too',
      text: `{"${planted}":1}`,
      says: /missing 'auths' key$/,
    },
    {
      name: 'auths in capitals',
      reason: 'the key is spelled exactly',
      text: '{"AUTHS":{}}',
      says: /missing 'auths' key$/,
    },
    {
      name: 'auths as a list',
      reason: 'Go refuses the whole file',
      text: '{"auths":[]}',
      says: /"auths" as an array, expected an object$/,
    },
    {
      name: 'nothing but an entry as text',
      reason: 'nothing is left to write',
      text: `{"auths":{"a":"${planted}"}}`,
      says: /entry "a" is a string, expected an object$/,
    },
    {
      name: 'nothing but an auth that is no base64',
      reason: 'the kubelet of 1.36 refuses the whole file',
      text: `{"auths":{"a":{"auth":"${planted}-"}}}`,
      says: /entry "a" has an "auth" that is not base64 at byte [0-9]+, expected base64/,
    },
    {
      name: 'a key of a megabyte',
      reason: 'a message stays a message',
      text: `{"auths":{"${'k'.repeat(1 << 20)}":1}}`,
      says: /^.{1,300}$/,
    },
  ] satisfies Bad[],
  ({ text, says }) => {
    assert.throws(
      () => read(text),
      (error: unknown) => {
        assert.ok(error instanceof PullwrightError && error.code === 'SourceInvalid');
        assert.match(error.message, says);
        assert.ok(!error.message.includes(planted) && !String(error.stack).includes(planted));
        return true;
      },
    );
  },
);

test('without entries of others, the bytes are those of the source', () => {
  const source = read('{ "auths" : { "b":{}, "a":{} } }\n');
  for (const foreign of ['drop', 'keep'] as const)
    assert.equal(
      text(wantedDocument(source, undefined, { foreign, owned: {} }).document),
      '{ "auths" : { "b":{}, "a":{} } }\n',
    );
});

interface Part extends Case {
  readonly text: string;
  readonly says: RegExp;
}

const GOOD = '"g":{"auth":"dTpw"}';
/** The document without what cannot be used. */
const REST = `{"auths":{${GOOD}}}`;

table(
  test,
  [
    {
      name: 'an auth that is no base64',
      reason: 'the kubelet of 1.36 refuses the whole file',
      text: `{"auths":{${GOOD},"b":{"auth":"-${planted}"}}}`,
      says: /^entry "b" has an "auth" that is not base64/,
    },
    {
      name: 'a number as "Auth"',
      reason: 'Go reads names of fields whatever their case',
      text: `{"auths":{${GOOD},"b":{"Auth":5}}}`,
      says: /^entry "b" has "auth" as a number, expected a string$/,
    },
    {
      name: 'credHelpers as a list',
      reason: 'CRI-O refuses the whole file',
      text: `{"auths":{${GOOD}},"credHelpers":[]}`,
      says: /^field "credHelpers" must be an object with string values$/,
    },
    {
      name: 'HttpHeaders as a number',
      reason: 'the kubelet refuses the whole file',
      text: `{"auths":{${GOOD}},"HttpHeaders":5}`,
      says: /^field "HttpHeaders" must be an object with string values$/,
    },
    {
      name: 'a broken entry before a good one of the same key',
      reason: 'the kubelet stops at the first',
      text: `{"auths":{"g":{"auth":5},${GOOD}}}`,
      says: /^an entry is duplicated/,
    },
  ] satisfies Part[],
  ({ text: given, says }) => {
    const source = read(given);
    assert.match(source.faults.join('; '), says);
    assert.ok(!source.faults.join().includes(planted));
    // Readers reject a file with this text, so it is not the desired content.
    const wanted = wantedDocument(source, source, { foreign: 'drop', owned: {} });
    assert.equal(text(wanted.document), REST);
    assert.notEqual(wanted.document.digest, source.digest);
    assert.equal(wanted.document.digest, read(REST).digest);
  },
);

test('an entry that turns bad stays as it was last good, and the others go on', () => {
  const there = read('{"auths":{"a":{"auth":"YTox"},"b":{"auth":"Yjox"}}}');
  const source = read('{"auths":{"a":{"auth":"YToy"},"b":{"auth":"-"}}}');
  for (const foreign of ['drop', 'keep'] as const) {
    const next = wantedDocument(source, there, { foreign, owned: {} });
    assert.equal(text(next.document), '{"auths":{"a":{"auth":"YToy"},"b":{"auth":"Yjox"}}}');
  }
});
