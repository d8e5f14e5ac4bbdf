import assert from 'node:assert/strict';
import {
  matchesImage,
  matchImageFault,
  matchImageHint,
} from '../../runtime/core/docker-config/match-images.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Hinted extends Case {
  readonly pattern: string;
  readonly hint: RegExp | undefined;
}

const HINTED: readonly Hinted[] = [
  { name: 'a host', pattern: 'quay.io', hint: undefined },
  {
    name: 'a star per label',
    pattern: '*.dkr.ecr.*.amazonaws.com',
    hint: undefined,
  },
  { name: 'a host and a path', pattern: 'quay.io/team', hint: undefined },
  { name: 'a scheme', reason: 'it would be the host', pattern: 'https://quay.io', hint: /scheme/ },
  {
    name: 'an address with dots in brackets',
    reason: 'its labels are no globs',
    pattern: '[::1.2.3.4]',
    hint: /IPv6 address matches with a port only/,
  },
  {
    name: 'a star in the path',
    reason: 'taken literally',
    pattern: 'quay.io/*',
    hint: /wildcards work in the host/,
  },
  { name: 'a lone star', reason: 'one label', pattern: '*', hint: /without a dot/ },
  { name: 'a star and a path', reason: 'one label too', pattern: '*/team', hint: /without a dot/ },
  { name: 'a host without a dot', reason: 'no star', pattern: 'localhost', hint: undefined },
  { name: 'a query', reason: 'cut off', pattern: 'quay.io/team?x', hint: /skipped/ },
  { name: 'a fragment', reason: 'cut off', pattern: 'quay.io#x', hint: /skipped/ },
];

table(test, HINTED, ({ pattern, hint }) => {
  if (hint === undefined) assert.equal(matchImageHint(pattern), undefined);
  else assert.match(matchImageHint(pattern) ?? '', hint);
});

test('a pattern that is no glob matches no image', () => {
  const pattern = '[::1.2.3.4]';
  assert.equal(matchImageFault(pattern), undefined, 'the kubelet takes it');
  assert.equal(matchesImage(pattern, 'a.b.c.d/app'), false);
});
