/** The mirror resolver: what it costs to compile rules and to resolve an image, and how both grow with the number of rules. */

import { compileMirrors, type MirrorRule, resolveMirrors } from '../runtime/core/mirrors/resolve.ts';
import { collectMirrors } from '../runtime/registry-overrides/mirror-sets/collect.ts';
import { interleaved, ms, printTable, ratio } from './measure.ts';

const SIZES = [10, 100, 1000, 10_000, 100_000];
const IMAGES = 1000;
const ROUNDS = 15;
const DIGEST = `sha256:${'a'.repeat(64)}`;

function rulesOf(count: number): readonly MirrorRule[] {
  return Array.from({ length: count }, (_, at): MirrorRule => {
    const wildcard = at % 50 === 0;
    const prefix = wildcard ? `*.r${at}.example.com` : `r${at % 97}.example.com/org-${at}/repo`;
    return {
      prefix,
      location: wildcard ? '' : prefix,
      blocked: at % 10 === 0,
      insecure: false,
      mirrors: [
        { location: `mirror-${at % 7}.example.com/m/${at}`, pullFrom: 'digest-only' },
        { location: `tags.example.com/m/${at}`, pullFrom: 'tag-only' },
      ],
    };
  });
}

function imagesOf(count: number): readonly string[] {
  return Array.from({ length: IMAGES }, (_, at) => {
    const rule = Math.floor((at / IMAGES) * count);
    return `r${rule % 97}.example.com/org-${rule}/repo/app@${DIGEST}`;
  });
}

const rows: Record<string, string | number>[] = [];
let first: number | undefined;
for (const size of SIZES) {
  const rules = rulesOf(size);
  const images = imagesOf(size);
  const index = compileMirrors(rules);
  const times = await interleaved(
    {
      compile: () => compileMirrors(rules),
      resolve: () => images.map((image) => resolveMirrors(index, image)),
    },
    ROUNDS,
  );
  const resolve = (times.resolve.median / images.length) * 1000;
  first ??= resolve;
  rows.push({
    rules: size,
    'compile ms': ms(times.compile.median),
    'resolve us': resolve.toFixed(2),
    'against 10 rules': ratio(resolve, first),
  });
}
printTable('Mirror resolver by number of rules', rows);

const entries = Array.from({ length: 10_000 }, (_, at) => ({
  source: `r${at % 97}.example.com/org-${at}/repo`,
  mirrors: ['m1.example.com/a', 'm2.example.com/b'],
}));
const objects = Array.from({ length: 10 }, (_, at) => ({
  apiVersion: 'config.openshift.io/v1',
  kind: 'ImageDigestMirrorSet',
  metadata: { name: `set-${at}` },
  spec: { imageDigestMirrors: entries.slice(at * 1000, (at + 1) * 1000) },
}));
const whole = await interleaved(
  {
    'read, check, merge': () => collectMirrors(objects),
    'and compile': () => compileMirrors(collectMirrors(objects).rules),
  },
  ROUNDS,
);
printTable(
  '10,000 entries of ten mirror sets',
  Object.entries(whole).map(([what, time]) => ({
    what,
    'median ms': ms(time.median),
    'max ms': ms(time.max),
  })),
);
