import assert from 'node:assert/strict';
import fc from 'fast-check';
import { compileMirrors, type MirrorRule, resolveMirrors } from '../../runtime/core/mirrors/resolve.ts';
import { forAll } from '../support/for-all.ts';
import { type Case, table, test } from '../support/suite.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

function rule(
  source: string,
  mirrors: readonly (string | MirrorRule['mirrors'][number])[],
  blocked = false,
): MirrorRule {
  return {
    prefix: source,
    location: source.startsWith('*.') ? '' : source,
    blocked,
    insecure: false,
    mirrors: mirrors.map((mirror) =>
      typeof mirror === 'string' ? { location: mirror, pullFrom: 'all' } : mirror,
    ),
  };
}

const MIRRORED = rule('quay.io', ['m.example.com']);
/** One mirror for digests, one for tags. */
const BY_KIND = rule('quay.io', [
  { location: 'd.example.com', pullFrom: 'digest-only' },
  { location: 't.example.com', pullFrom: 'tag-only' },
]);

interface Row extends Case {
  /** @default {MIRRORED} */
  readonly rules?: readonly MirrorRule[];
  /** @default {'quay.io/app:1'} */
  readonly image?: string;
  /** @default none */
  readonly candidates?: readonly string[];
  /** @default none */
  readonly skipped?: readonly string[];
  readonly ports?: 'runtime' | 'text' | 'exact';
}

const ROWS: readonly Row[] = [
  {
    name: 'gives the image itself without a rule',
    image: 'docker.io/library/nginx:1',
    candidates: ['docker.io/library/nginx:1'],
  },
  {
    name: 'keeps the order of the mirrors and tries the source last',
    reason: 'the administrator wrote an order',
    rules: [rule('quay.io', ['z.example.com', 'a.example.com/q'])],
    image: 'quay.io/team/app:1',
    candidates: ['z.example.com/team/app:1', 'a.example.com/q/team/app:1', 'quay.io/team/app:1'],
  },
  {
    name: 'takes the longest source',
    reason: 'a narrow rule beats a wide one, whatever their order',
    rules: [rule('quay.io', ['wide.example.com']), rule('quay.io/team', ['narrow.example.com'])],
    image: 'quay.io/team/app:1',
    candidates: ['narrow.example.com/app:1', 'quay.io/team/app:1'],
  },
  {
    name: 'does not match within a path segment',
    reason: 'quay.io/team is not quay.io/team-two',
    rules: [rule('quay.io/team', ['m.example.com'])],
    image: 'quay.io/team-two/app:1',
    candidates: ['quay.io/team-two/app:1'],
  },
  {
    name: 'does not match a longer host or inside a path',
    reason: 'substring matching was the defect of the existing system',
    image: 'notquay.io/quay.io/app:1',
    candidates: ['notquay.io/quay.io/app:1'],
  },
  {
    name: 'covers every subdomain with a wildcard, not the domain itself',
    reason: '*.example.org needs at least one label',
    rules: [rule('*.example.org', ['m.example.com/org'])],
    image: 'a.b.example.org/app:1',
    candidates: ['m.example.com/org/app:1', 'a.b.example.org/app:1'],
  },
  {
    name: 'does not cover the bare domain with a wildcard',
    reason: '*.example.org needs at least one label',
    rules: [rule('*.example.org', ['m.example.com/org'])],
    image: 'example.org/app:1',
    candidates: ['example.org/app:1'],
  },
  {
    name: 'prefers a longer plain source to a wildcard, and the wildcard on a tie',
    reason: 'the runtime compares the texts of the sources',
    rules: [rule('*.example.org', ['wild.example.com']), rule('a.example.org', ['plain.example.com'])],
    image: 'a.example.org/app:1',
    candidates: ['wild.example.com/app:1', 'a.example.org/app:1'],
  },
  {
    name: 'skips mirrors for digests when a tag is asked',
    reason: 'tags may differ between mirrors; digests cannot',
    rules: [BY_KIND],
    candidates: ['t.example.com/app:1', 'quay.io/app:1'],
    skipped: ['DigestOnly d.example.com/app:1'],
  },
  {
    name: 'drops the tag beside a digest and skips mirrors for tags',
    reason: 'the digest decides what is pulled',
    rules: [BY_KIND],
    image: `quay.io/app:1@${DIGEST}`,
    candidates: [`d.example.com/app@${DIGEST}`, `quay.io/app@${DIGEST}`],
    skipped: [`TagOnly t.example.com/app@${DIGEST}`],
  },
  {
    name: 'never names a blocked source',
    reason: 'NeverContactSource',
    rules: [rule('quay.io', ['m.example.com'], true)],
    candidates: ['m.example.com/app:1'],
    skipped: ['Blocked quay.io/app:1'],
  },
  {
    name: 'does not mirror a mirror, but honours that its place is blocked',
    reason: 'containers/image looks a mirror up for "blocked", not for mirrors',
    rules: [
      rule('quay.io', ['b.example.com/x', 'c.example.com']),
      rule('b.example.com', ['d.example.com'], true),
      rule('c.example.com', ['d.example.com']),
    ],
    candidates: ['c.example.com/app:1', 'quay.io/app:1'],
    skipped: ['Blocked b.example.com/x/app:1'],
  },
  {
    name: 'covers another port of the same host, as the runtime does',
    reason: 'containers/image takes ":" for a boundary',
    image: 'quay.io:5000/app:1',
    candidates: ['m.example.com:5000/app:1', 'quay.io:5000/app:1'],
  },
  {
    name: 'refuses a reference with two ports',
    reason: 'the source matched up to the port, the mirror has a path',
    rules: [rule('quay.io', ['m.example.com/x', 'm.example.com:1'])],
    image: 'quay.io:5000/app:1',
    skipped: [
      'InvalidReference m.example.com/x:5000/app:1',
      'InvalidReference m.example.com:1:5000/app:1',
      'GivenUp quay.io:5000/app:1',
    ],
  },
  {
    name: 'refuses a mirror without repository',
    reason: 'a whole repository cannot be mapped to a bare host, and the runtime then asks no place at all',
    rules: [rule('quay.io/app', ['m.example.com'])],
    skipped: ['InvalidReference m.example.com:1', 'GivenUp quay.io/app:1'],
  },
  {
    name: 'passes over a source with a tag',
    reason: 'containers/image looks for the name alone, so such a rule decides about nothing',
    rules: [rule('quay.io/app:1', ['tagged.example.com/app:1']), rule('quay.io', ['m.example.com'])],
    candidates: ['m.example.com/app:1', 'quay.io/app:1'],
  },
  {
    name: 'takes a source with a tag when whole texts are compared',
    reason: 'the release look-up replaces whole pull specs',
    ports: 'text',
    rules: [rule('quay.io/app:1', ['tagged.example.com/app:1']), rule('quay.io', ['m.example.com'])],
    candidates: ['tagged.example.com/app:1', 'quay.io/app:1'],
  },
  {
    name: 'asks where a blocked source has moved to',
    reason:
      'containers/image looks up whether the place that it contacts is blocked, not what the place stands for',
    rules: [{ ...rule('quay.io/team', ['m.example.com'], true), location: 'new.example.com/team' }],
    image: 'quay.io/team/app:1',
    candidates: ['m.example.com/app:1', 'new.example.com/team/app:1'],
  },
  {
    name: 'does not ask where a source has moved to that is blocked itself',
    rules: [
      { ...rule('quay.io/team', ['m.example.com']), location: 'new.example.com/team' },
      rule('new.example.com', [], true),
    ],
    image: 'quay.io/team/app:1',
    candidates: ['m.example.com/app:1'],
    skipped: ['Blocked new.example.com/team/app:1'],
  },
  {
    name: 'refuses a moved source that is no reference',
    reason: 'a location needs a repository where the source is one',
    rules: [{ ...rule('quay.io/app', []), location: 'new.example.com' }],
    skipped: ['InvalidReference new.example.com:1'],
  },
  {
    name: 'refuses what the runtime does not take as it is',
    reason: 'capitals in a path, Docker Hub without library/, an IPv6 address: containers/image stops there',
    rules: [rule('quay.io', ['m.example.com/Hub', 'docker.io', '[::1]:5000'])],
    skipped: [
      'InvalidReference m.example.com/Hub/app:1',
      'InvalidReference docker.io/app:1',
      'InvalidReference [::1]:5000/app:1',
      'GivenUp quay.io/app:1',
    ],
  },
  {
    name: 'keeps ports apart when asked to',
    reason: '--registry-overrides compares hosts with their ports',
    ports: 'exact',
    image: 'quay.io:5000/app:1',
    candidates: ['quay.io:5000/app:1'],
  },
];

table(test, ROWS, ({ rules = [MIRRORED], image = 'quay.io/app:1', candidates = [], skipped = [], ports }) => {
  const answer = resolveMirrors(compileMirrors(rules, ports), image);
  assert.deepEqual(
    answer.candidates.map((candidate) => candidate.reference),
    candidates,
  );
  assert.deepEqual(
    answer.skipped.map((candidate) => `${candidate.reason} ${candidate.reference}`),
    skipped,
  );
});

test('answers any text', () => {
  forAll({ numRuns: 2000, seed: 8 }, fc.string(), fc.string(), (a, b) => {
    const answer = resolveMirrors(compileMirrors([rule(a, [b])]), b + a);
    assert.equal(answer.candidates.length > 0, answer.refusal === undefined);
  });
});
