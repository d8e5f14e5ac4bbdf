/** Random nodes: a registries.conf, the node's own auth file, secrets of a namespace, and an image to pull. */
import fc from 'fast-check';
import type { Registry } from '../../../runtime/core/mirrors/registries-conf.ts';
import { formatRegistriesConf } from '../../../runtime/registry-overrides/mirror-sets/fix.ts';
import { join, one, words } from '../pieces.ts';

export interface PullQuestion {
  readonly conf: string;
  readonly image: string;
  /** Text of the node's auth file. */
  readonly node: string;
  /** Per secret its keys and `user:password` pairs. */
  readonly secrets: readonly Readonly<Record<string, string>>[];
}

// Few names, so that prefixes meet images, each other, mirrors and keys.
const HOST = one('a.io', 'b.a.io', 'docker.io', 'm.io:5000', 'n.io', 'localhost');
const PATH = one('', '', '/team', '/team/app', '/te', '/library', '/hub');
const PLACE = join(HOST, PATH);
const MIRROR = fc.record({
  location: PLACE,
  pullFrom: fc.constantFrom('all' as const, 'all' as const, 'digest-only' as const, 'tag-only' as const),
});
const REGISTRY: fc.Arbitrary<Registry> = fc
  .record({
    prefix: fc.oneof({ arbitrary: PLACE, weight: 5 }, one('*.io', '*.a.io')),
    moved: fc.option(PLACE, { nil: undefined, freq: 3 }),
    blocked: fc.nat(3).map((roll) => roll === 0),
    mirrors: fc.array(MIRROR, { maxLength: 3 }),
  })
  .map(({ prefix, moved, blocked, mirrors }) => ({
    prefix,
    location: moved ?? (prefix.startsWith('*') ? '' : prefix),
    blocked,
    insecure: false,
    mirrors,
  }));
/** A location with two different switches would be refused. */
const CONF = fc
  .uniqueArray(REGISTRY, {
    minLength: 1,
    maxLength: 5,
    selector: ({ location, prefix }) => location || prefix,
  })
  .map(formatRegistriesConf);

const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;
const IMAGE = join(
  one('a.io', 'b.a.io', 'docker.io', 'a.io:5000', 'localhost', 'x.b.a.io'),
  one('/team/app', '/team', '/library/nginx', '/team/app/deep', '/te'),
  one(':1', ':1', `@${DIGEST}`),
);

const KEY = join(
  one('', '', '', '', 'https://', 'http://'),
  words('a.io b.a.io docker.io index.docker.io m.io:5000 m.io n.io localhost a.io:5000'),
  one('', '', '', '/', '/team', '/team/app', '/te', '/library', '/hub', '/hub/team', '/v1/', '/v2/'),
);
const entries = (user: string, most: number): fc.Arbitrary<Readonly<Record<string, string>>> =>
  fc
    .uniqueArray(fc.tuple(KEY, fc.nat(99)), { maxLength: most, selector: ([key]) => key })
    .map((list) => Object.fromEntries(list.map(([key, number]) => [key, `${user}${number}:p${number}`])));

/** `auths` for pairs. */
export function authsOf(pairs: Readonly<Record<string, string>>): object {
  return Object.fromEntries(
    Object.entries(pairs).map(([key, pair]) => [key, { auth: Buffer.from(pair).toString('base64') }]),
  );
}

const HELPERS = fc.oneof(
  { arbitrary: fc.constant({}), weight: 6 },
  one('a.io', 'm.io:5000').map((host) => ({ credHelpers: { [host]: 'ecr' } })),
);
const NODE = fc
  .tuple(entries('node', 3), HELPERS)
  .map(([pairs, helpers]) => JSON.stringify({ auths: authsOf(pairs), ...helpers }));

export const PULL_QUESTION: fc.Arbitrary<PullQuestion> = fc.record({
  conf: CONF,
  image: IMAGE,
  node: NODE,
  secrets: fc.array(entries('team', 7), { minLength: 1, maxLength: 2 }),
});
