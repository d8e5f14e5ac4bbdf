import assert from 'node:assert/strict';
import { mergePullSecrets } from '../../runtime/core/docker-config/merge.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { suite } from '../support/suite.ts';
import { config, PLATFORM, TENANT } from './merge-case.ts';

const test = suite('mergePullSecrets with what was good before');

test('what was good stays in use when it turns bad, entry by entry', () => {
  const lastGood = {
    text: redact(config(PLATFORM, ['p.io', 'q.io', 'a.io', 'b.io'])),
    keys: ['a.io', 'b.io'],
  };
  const original = redact(`{"auths":{"p.io":{"auth":"!"},"q.io":{"auth":"${PLATFORM}"}}}`);
  const additional = redact(`{"auths":{"a.io":{"auth":"!"},"c.io":{"auth":"${TENANT}"}}}`);
  const merged = mergePullSecrets({ original, additional, lastGood });
  assert.ok(merged.ok);
  assert.deepEqual(
    merged.entries.map(({ key, source }) => `${key} ${source}`),
    ['a.io lastGood', 'c.io additional', 'p.io lastGood', 'q.io original'],
  );
  assert.match(merged.verdicts[0]?.message ?? '', /last good one stays in use/);
  assert.match(merged.originalVerdicts[0]?.message ?? '', /last good one stays in use/);
  const unreadable = mergePullSecrets({ original, additional: redact('{'), lastGood });
  assert.deepEqual(unreadable.ok && unreadable.entries.map(({ key }) => key), [
    'a.io',
    'b.io',
    'p.io',
    'q.io',
  ]);
});

test('the last good entry of the tenant yields to what the platform names now', () => {
  const lastGood = { text: redact(config(TENANT, ['a.io'])), keys: ['a.io'] };
  const merged = mergePullSecrets({
    original: redact(config(PLATFORM, ['https://a.io'])),
    additional: redact('{'),
    lastGood,
  });
  assert.deepEqual(merged.ok && merged.entries.map(({ key, source }) => [key, source]), [
    ['https://a.io', 'original'],
  ]);
});

test.run();
