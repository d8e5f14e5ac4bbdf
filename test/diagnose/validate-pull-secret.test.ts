import assert from 'node:assert/strict';
import type { SecretObject } from '../../runtime/core/kubernetes/object.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { validateDockerConfig, validateSecret } from '../../runtime/diagnose/checks/docker-config.ts';
import { plantedAuth } from '../support/canary.ts';
import { table, test } from '../support/suite.ts';

const AUTH = plantedAuth('validate');
const one = (key: string, entry: string): string => `{"auths":{"${key}":${entry}}}`;
const good = `{"auth":"${AUTH}"}`;

table(
  test,
  [
    { name: 'good', reason: 'nothing to say', text: one('quay.io', good), codes: [] },
    { name: 'a scheme for a host', reason: 'both fold it', text: one('https://quay.io', good), codes: [] },
    { name: 'no JSON', reason: 'refused', text: 'quay.io: me', codes: ['error NotJson'] },
    { name: 'no auths', reason: 'nothing in it', text: '{"quay.io":{}}', codes: ['error AuthsMissing'] },
    {
      name: 'poison',
      reason: 'fails the pod',
      text: one('quay.io', '{"auth":"?"}'),
      codes: ['error AuthNotBase64'],
    },
    {
      name: 'a wrong kind',
      reason: 'fails the pod',
      text: one('quay.io', '{"password":1}'),
      codes: ['error FieldNotText'],
    },
    {
      name: 'empty',
      reason: 'harms only itself',
      text: one('quay.io', '{}'),
      codes: ['warning NoCredential'],
    },
    {
      name: 'a key with a tag',
      reason: 'never matches',
      text: one('quay.io/a:1', good),
      codes: ['warning KeyInvalid'],
    },
    {
      name: 'a slash',
      reason: 'CRI-O never finds it',
      text: one('quay.io/a/', good),
      codes: ['warning NotPortable'],
    },
    {
      name: 'a scheme for a namespace',
      reason: 'CRI-O takes the host',
      text: one('https://quay.io/a', good),
      codes: ['warning NotPortable'],
    },
    {
      name: 'a wildcard',
      reason: 'CRI-O knows none',
      text: one('*.quay.io', good),
      codes: ['warning NotPortable'],
    },
    {
      name: 'no padding',
      reason: 'CRI-O refuses it',
      text: one('quay.io', '{"auth":"dTpwcA"}'),
      codes: ['warning NotPortable'],
    },
    {
      name: 'only user and password',
      reason: 'CRI-O reads none',
      text: one('quay.io', '{"username":"u","password":"p"}'),
      codes: ['warning NotPortable'],
    },
    {
      name: 'headers',
      reason: 'fails the pod',
      text: '{"auths":{},"HttpHeaders":{"a":1}}',
      codes: ['error FieldInvalid'],
    },
    {
      name: 'AUTHS',
      reason: 'read by Go alone',
      text: one('quay.io', good).replace('auths', 'AUTHS'),
      codes: ['warning FieldCase'],
    },
  ],
  ({ text, codes }) => {
    const problems = validateDockerConfig(redact(text));
    assert.deepEqual(
      problems.map(({ severity, code }) => `${severity} ${code}`),
      codes,
    );
    assert.doesNotMatch(JSON.stringify(problems), /cAnArY/);
  },
);

test('a document that is none has the place where it breaks, and an odd field its name', () => {
  const [broken] = validateDockerConfig(redact('{\n  "auths": ]'));
  assert.deepEqual([broken?.path, broken?.position], ['', { line: 2, column: 12 }]);
  const [empty] = validateDockerConfig(redact(''));
  assert.equal(empty?.code, 'Empty');
  const paths = (text: string): readonly string[] =>
    validateDockerConfig(redact(text)).map(({ code, path }) => `${code} ${path}`);
  assert.deepEqual(paths(`{"AUTHS":{"quay.io":${good}}}`), ['FieldCase AUTHS']);
  assert.deepEqual(paths(`{"auths":{"quay.io":${good},"quay.io":${good}}}`), [
    'DuplicateKey auths["quay.io"]',
  ]);
});

test('an entry is named by its path and place', () => {
  const [problem] = validateDockerConfig(redact('{"auths":{\n  "quay.io": {"auth": "?"}}}'));
  assert.deepEqual([problem?.path, problem?.position], ['auths["quay.io"]', { line: 2, column: 3 }]);
});

function secret(type: string, data: Readonly<Record<string, string>>): SecretObject {
  const wrapped = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, redact(value)]));
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, type, data: wrapped };
}

const TYPE = 'kubernetes.io/dockerconfigjson';
const base64 = (text: string): string => Buffer.from(text).toString('base64');

table(
  test,
  [
    {
      name: 'the key is missing',
      reason: 'the API server refuses it',
      object: secret(TYPE, { other: '' }),
      wanted: false,
      paths: ['data[".dockerconfigjson"] KeyMissing'],
    },
    {
      name: 'the value is no base64',
      reason: 'the API server refuses it',
      object: secret(TYPE, { '.dockerconfigjson': '{"auths"' }),
      wanted: false,
      paths: ['data[".dockerconfigjson"] NotBase64'],
    },
    {
      name: 'another type',
      reason: 'not ours to judge',
      object: secret('Opaque', { a: '' }),
      wanted: false,
      paths: [],
    },
    {
      name: 'another type where a pull secret is wanted',
      reason: 'pods pass over it',
      object: secret('Opaque', { '.dockerconfigjson': base64(one('a.io', good)) }),
      wanted: true,
      paths: ['type WrongType'],
    },
    {
      name: 'the legacy form',
      reason: 'entries at the top',
      object: secret('kubernetes.io/dockercfg', { '.dockercfg': base64('{"a.io":7}') }),
      wanted: false,
      paths: ['data[".dockercfg"]: ["a.io"] EntryNotObject'],
    },
  ],
  ({ object, wanted, paths }) => {
    assert.deepEqual(
      validateSecret(object, wanted).map(({ path, code }) => `${path} ${code}`),
      paths,
    );
  },
);
