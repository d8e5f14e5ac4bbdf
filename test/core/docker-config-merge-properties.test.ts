import assert from 'node:assert/strict';
import fc from 'fast-check';
import { mergePullSecrets } from '../../runtime/core/docker-config/merge.ts';
import { registryKey } from '../../runtime/core/docker-config/registry-key.ts';
import { redact, reveal } from '../../runtime/core/redacted.ts';
import { suite } from '../support/suite.ts';
import { config, merge, PLATFORM, TENANT, users } from './merge-case.ts';

const test = suite('mergePullSecrets for any keys');

const KEY = fc
  .tuple(
    fc.constantFrom('', '', 'https://', 'http://', 'HTTPS://'),
    fc.constantFrom(
      'quay.io',
      'Quay.io',
      'r.io',
      'r.io:443',
      'r.io:80',
      'docker.io',
      'index.docker.io',
      '*.io',
      'a.r.io',
    ),
    fc.constantFrom('', '', '/', '/v1/', '/v2', '/team', '/team/', '/team/app', '//'),
  )
  .map((parts) => parts.join(''));
const KEYS = fc.uniqueArray(KEY, { maxLength: 6 });
const IMAGES = [
  'quay.io/team/app',
  'quay.io/x',
  'r.io/team/app',
  'r.io/x',
  'docker.io/library/nginx',
  'docker.io/team/app',
  'a.r.io/x',
];

test('merging the result again changes nothing', () => {
  fc.assert(
    fc.property(KEYS, KEYS, (platform, tenant) => {
      const once = reveal(merge(platform, tenant).text);
      const again = mergePullSecrets({ original: redact(once), additional: redact(config(TENANT, tenant)) });
      assert.equal(again.ok && reveal(again.text), once);
    }),
  );
});

test('the original always wins: every entry of it is in the result, and no other of the same meaning', () => {
  fc.assert(
    fc.property(KEYS, KEYS, (platform, tenant) => {
      const { auths } = JSON.parse(reveal(merge(platform, tenant).text)) as {
        auths: Record<string, { auth: string }>;
      };
      const mine = new Set(platform.map((key) => registryKey(key).meaning));
      for (const key of platform) {
        const { portable } = registryKey(key);
        assert.equal((auths[key] ?? auths[portable])?.auth, PLATFORM);
      }
      for (const [key, { auth }] of Object.entries(auths)) {
        if (auth === TENANT) assert.ok(!mine.has(registryKey(key).meaning), key);
      }
    }),
  );
});

test('where the platform alone names the host, its credential is the first one tried', () => {
  fc.assert(
    fc.property(KEYS, KEYS, fc.constantFrom(...IMAGES), (platform, tenant, image) => {
      const hostOnly = tenant.filter((key) => !registryKey(key).meaning.includes('/'));
      const exact = platform.filter((key) => !key.includes('*') && registryKey(key).identities.length === 1);
      // What the platform spells twice is random for CRI-O from the start.
      fc.pre(new Set(exact.map((key) => registryKey(key).portable)).size === exact.length);
      const before = users(reveal(merge(exact, []).text), image);
      const after = users(reveal(merge(exact, hostOnly).text), image);
      assert.equal(before.kubelet.length > 0 ? after.kubelet[0] : 'platform', 'platform');
      if (before.crio === 'platform') assert.equal(after.crio, 'platform');
    }),
    { numRuns: 400 },
  );
});

test.run();
