/** The platform's part of the merge: its keys, its broken entries, its unreadable document. */
import assert from 'node:assert/strict';
import { mergePullSecrets } from '../../runtime/core/docker-config/merge.ts';
import { redact, reveal } from '../../runtime/core/redacted.ts';
import { suite } from '../support/suite.ts';
import { config, merge, TENANT, users } from './merge-case.ts';

const test = suite('mergePullSecrets, the part of the platform');

test('an unreadable original is a problem, never a document', () => {
  for (const text of ['', '{', '[]', 'null', '{}', '{"auths":null}', '{"auths":[]}']) {
    const merged = mergePullSecrets({ original: redact(text), additional: redact(config(TENANT, ['r.io'])) });
    assert.equal(merged.ok, false, text);
  }
});

test('a namespace that the platform writes with a scheme is read alike by both', () => {
  const merged = merge(['https://quay.io/team/'], ['quay.io']);
  assert.deepEqual(users(reveal(merged.text), 'quay.io/team/app'), {
    kubelet: ['platform', 'tenant'],
    crio: 'platform',
  });
});

test('two namespaces of the platform that differ by scheme alone: one gets the plain key, the other stays', () => {
  const { text, entries } = merge(['http://quay.io/team', 'https://quay.io/team'], []);
  assert.deepEqual(Object.keys(JSON.parse(reveal(text)).auths), ['https://quay.io/team', 'quay.io/team']);
  assert.deepEqual(
    entries.map(({ key }) => key),
    ['https://quay.io/team', 'quay.io/team'],
  );
});

test('a broken entry of the platform keeps its registry', () => {
  const merged = mergePullSecrets({
    original: redact('{"auths":{"quay.io":{"auth":"!"}}}'),
    additional: redact(config(TENANT, ['quay.io'])),
  });
  assert.ok(merged.ok);
  assert.equal(reveal(merged.text), '{"auths":{}}');
  assert.deepEqual(
    merged.verdicts.map((one) => one.verdict),
    ['Shadowed'],
  );
});

test.run();
