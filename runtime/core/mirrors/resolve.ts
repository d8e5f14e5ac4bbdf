/**
 * The mirror resolver: the pull sources of an image, in order, and why others are skipped.
 *
 * Rules come from mirror sets (runtime/registry-overrides/mirror-sets/collect.ts), from `registries.conf` (registries-conf.ts) or
 * from override texts (runtime/registry-overrides/overrides.ts). All have the shape of one `[[registry]]` table. The longest
 * source wins, at the boundaries of path segments; `*.example.org` matches every subdomain. Mirrors are tried in written order,
 * the source last; a mirror is not mirrored again. A pull source is blocked only by its own rule.
 *
 * Source of the rule: containers/image `sysregistriesv2` (`FindRegistry`, `PullSourcesFromReference`) and its pull loop, compared
 * with their code in test/oracle/container-image and with skopeo in test/registry.
 *
 * containers/image rewrites the reference first, and then checks whether the location to contact is blocked. A blocked source
 * with another `location` is therefore still pulled from there.
 */

import { formatImageReference, MAX_PATH_LENGTH, parseImageReference } from '../image-reference.ts';
import type { Mirror, Registry } from './registries-conf.ts';

// How the runtime reads a reference before and after a rule rewrites it.
// Source of the rule: containers/image `docker/reference` and `sysregistriesv2` (`rewriteReference`).

/** Form of almost every reference. A match is always canonical, so that only other texts need the whole grammar. */
const PLAIN =
  /^(?!(?:index\.)?docker\.io\/)[a-z0-9]+(?:-+[a-z0-9]+)*(?:\.[a-z0-9]+(?:-+[a-z0-9]+)*)+(?::[0-9]+)?(?:\/[a-z0-9]+(?:[._-][a-z0-9]+)*)+(?::[a-z0-9][a-z0-9.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;

/**
 * Whether the runtime accepts a reference unchanged: a host, a lower-case repository, and `library/` where Docker Hub requires
 * it. Its grammar has no IPv6 addresses.
 */
export function isCanonical(reference: string): boolean {
  if (reference.length <= MAX_PATH_LENGTH && PLAIN.test(reference)) return true;
  if (reference.startsWith('[')) return false;
  const parsed = parseImageReference(reference);
  return parsed.ok && formatImageReference(parsed.reference) === reference;
}

/** The error of containers/image for an invalid reference. */
export function refusalText(reference: string): string {
  const parsed = parseImageReference(reference);
  return `rewriting reference: ${parsed.ok ? 'repository name must be canonical' : parsed.goText}`;
}

export function withoutTagAndDigest(reference: string): string {
  const at = reference.indexOf('@');
  const name = at === -1 ? reference : reference.slice(0, at);
  const colon = name.lastIndexOf(':');
  const slash = name.lastIndexOf('/');
  return slash !== -1 && colon > slash ? name.slice(0, colon) : name;
}

/** Where a rule is defined, as text for users. */
export function originText({ kind, name, path }: RuleOrigin): string {
  return `${kind}/${name} ${path}`;
}

/** `name:tag@digest` is pulled as `name@digest`. */
export function withoutTagBesideDigest(image: string): string {
  const at = image.indexOf('@');
  if (at === -1) return image;
  const colon = image.lastIndexOf(':', at);
  return colon > image.lastIndexOf('/', at) && colon !== -1 ? image.slice(0, colon) + image.slice(at) : image;
}

/** Where a rule or a mirror is defined. */
export interface RuleOrigin {
  readonly kind: string;
  readonly name: string;
  /** Path within the object, such as `spec.imageDigestMirrors[0].mirrors[1]`. */
  readonly path: string;
}

export interface RuleMirror extends Mirror {
  readonly origin?: RuleOrigin;
}

/** A source with its mirrors, in the order they are tried. */
export interface MirrorRule extends Registry {
  readonly mirrors: readonly RuleMirror[];
  readonly origins?: readonly RuleOrigin[];
  /** Whether a mirror set has `NeverContactSource`; a source may be blocked for other reasons. Absent: no. */
  readonly never?: boolean;
}

/**
 * How a source is compared. `runtime`: tag and digest are ignored, and a source without a port matches `host:port`, like
 * containers/image. `text`: the same, but with tag and digest. `exact`: with tag and digest, and a source without a port does not
 * match `host:port`, like `--registry-overrides`; nor does a bare host match `host:tag`.
 */
export type Ports = 'runtime' | 'text' | 'exact';

/** Rules indexed for look-up in time independent of their number. */
export type MirrorIndex = Readonly<ReturnType<typeof compileMirrors>>;

export interface Candidate {
  /** The full reference to pull. */
  readonly reference: string;
  readonly kind: 'mirror' | 'source';
  /** Replacement for the matched source. */
  readonly location: string;
  /** Whether plain HTTP and unverified certificates are accepted. Absent: no. */
  readonly insecure?: boolean;
  readonly origin?: RuleOrigin;
}

export type SkipReason =
  | 'DigestOnly'
  | 'TagOnly'
  | 'Blocked'
  | 'InvalidReference'
  | 'GivenUp'
  | 'PolicyRejected';

export type SkippedCandidate = Candidate & Refusal;

export interface Resolution {
  /** The resolved reference: without its tag if it has a digest. */
  readonly image: string;
  readonly byDigest: boolean;
  /** The matching rule; absent if none matches, so that the image itself is the only candidate. */
  readonly rule?: MirrorRule;
  /** In the order they are tried; empty if every pull source is blocked or rejected. */
  readonly candidates: readonly Candidate[];
  readonly skipped: readonly SkippedCandidate[];
  /** Why the runtime rejects the image before it tries any pull source, in its wording. `candidates` is then empty. */
  readonly refusal?: string;
}

/** Indexes rules for {@link resolveMirrors}. Of rules with the same source, the first wins; an empty source never matches. */
export function compileMirrors(rules: readonly MirrorRule[], ports: Ports = 'runtime') {
  const bySource = new Map<string, MirrorRule>();
  /** Rules for `*.example.org`, by `.example.org`. */
  const byDomain = new Map<string, MirrorRule>();
  let hasBlocked = false;
  // Backwards, so that the first of several wins without a look-up before each.
  for (const rule of rules.toReversed()) {
    const { prefix } = rule;
    if (prefix === '') continue;
    bySource.set(prefix, rule);
    if (prefix.startsWith('*.')) byDomain.set(prefix.slice(1), rule);
    hasBlocked ||= rule.blocked;
  }
  return { rules, bySource, byDomain, hasBlocked, ports };
}

/**
 * Resolves one image. `image` is a reference with its host, as the runtime sees it (`docker.io/library/nginx:1`, not
 * `nginx:1`). Never throws: text that is not a reference is matched as text.
 */
export function resolveMirrors(index: MirrorIndex, image: string): Resolution {
  const reference = withoutTagBesideDigest(image);
  const byDigest = reference.includes('@');
  const found = findRule(index, comparedPart(index, reference));
  if (found === undefined) {
    const only: Candidate = { reference, kind: 'source', location: reference };
    return { image: reference, byDigest, candidates: [only], skipped: [] };
  }
  const { rule, length } = found;
  const places = placesOf(rule, reference, reference.slice(length));
  const refusals = places.map(
    (place, at) =>
      refusalByUse(rule.mirrors[at], byDigest) ?? refusalOf(index, rule, place.reference, reference),
  );
  const invalid =
    index.ports === 'runtime'
      ? places.find((_, at) => refusals[at]?.reason === 'InvalidReference')
      : undefined;
  const told = invalid === undefined ? refusals : refusals.map((refusal) => refusal ?? GIVEN_UP);
  return {
    image: reference,
    byDigest,
    rule,
    candidates: places.filter((_, at) => told[at] === undefined),
    skipped: places.flatMap((place, at) => {
      const refusal = told[at];
      return refusal === undefined ? [] : [{ ...place, ...refusal }];
    }),
    ...(invalid === undefined ? {} : { refusal: refusalText(invalid.reference) }),
  };
}

/** The mirrors of the rule, then its source, for an image with `rest` after the matched source. */
function placesOf(rule: MirrorRule, reference: string, rest: string): Candidate[] {
  const places: Candidate[] = rule.mirrors.map((mirror) => ({
    reference: mirror.location + rest,
    kind: 'mirror',
    location: mirror.location,
    ...(mirror.insecure === true ? INSECURE : undefined),
    ...(mirror.origin === undefined ? undefined : { origin: mirror.origin }),
  }));
  // Only a wildcard may have no location: it is not rewritten.
  const moved = rule.location !== '';
  places.push({
    reference: moved ? rule.location + rest : reference,
    kind: 'source',
    location: moved ? rule.location : rule.prefix,
    ...(rule.insecure ? INSECURE : undefined),
  });
  return places;
}

const INSECURE = { insecure: true } as const;

const GIVEN_UP = {
  reason: 'GivenUp',
  message: 'The runtime rejects the image before it tries any pull source',
} as const;

/** The runtime looks up rules by image name, so a source with a tag or a digest never matches. */
function comparedPart(index: MirrorIndex, reference: string): string {
  return index.ports === 'runtime' ? withoutTagAndDigest(reference) : reference;
}

/** The rule that matches `reference`, and the number of characters that its source covers. */
export function findRule(index: MirrorIndex, reference: string) {
  const exact = findExact(index, reference);
  if (index.byDomain.size === 0) return exact;
  const wildcard = findWildcard(index, reference);
  if (wildcard === undefined || exact === undefined) return wildcard ?? exact;
  // The runtime compares the texts of the sources, not what they match, and sorts `*` before everything else.
  return exact.rule.prefix.length > wildcard.rule.prefix.length ? exact : wildcard;
}

function findExact(index: MirrorIndex, reference: string) {
  for (let end = reference.length; end > 0; end -= 1) {
    if (end < reference.length && !isBoundary(index, reference, end)) continue;
    const rule = index.bySource.get(reference.slice(0, end));
    if (rule !== undefined) return { rule, length: end };
  }
  return undefined;
}

function findWildcard(index: MirrorIndex, reference: string) {
  const [host = ''] = reference.split(/[:/@]/, 1);
  const end = host.length;
  for (let dot = reference.indexOf('.'); dot !== -1 && dot < end; dot = reference.indexOf('.', dot + 1)) {
    const suffix = reference.slice(dot, end);
    const rule = index.byDomain.get(suffix);
    // The runtime checks only the first occurrence of the suffix: `*.a` does not match `x.a.a`.
    if (rule !== undefined && reference.indexOf(suffix) === dot) return { rule, length: end };
  }
  return undefined;
}

function isBoundary(index: MirrorIndex, reference: string, end: number): boolean {
  const next = reference[end];
  if (next === '/' || next === '@') return true;
  if (next !== ':') return false;
  return index.ports !== 'exact' || reference.lastIndexOf('/', end - 1) !== -1;
}

/** `message`: one sentence for the user. */
type Refusal = { readonly reason: SkipReason; readonly message: string };

function refusalByUse(mirror: RuleMirror | undefined, byDigest: boolean): Refusal | undefined {
  if (mirror?.pullFrom === 'digest-only' && !byDigest)
    return { reason: 'DigestOnly', message: 'This mirror serves only images by digest' };
  if (mirror?.pullFrom === 'tag-only' && byDigest)
    return { reason: 'TagOnly', message: 'This mirror serves only images by tag' };
  return undefined;
}

/** Why the runtime rejects the pull source `reference` for `image` under `rule`. */
function refusalOf(
  index: MirrorIndex,
  rule: MirrorRule,
  reference: string,
  image: string,
): Refusal | undefined {
  if (reference === image) return rule.blocked ? blockedBy(rule) : undefined;
  if (isCanonical(reference)) return blockAt(index, comparedPart(index, reference));
  return {
    reason: 'InvalidReference',
    message: `"${reference}" is not a valid image reference, so the runtime rejects the image: write source and mirror with the same parts (port, repository)`,
  };
}

/** A pull source is blocked by its own rule, even as a mirror of another source: a blocked source that moved is tried. */
function blockAt(index: MirrorIndex, place: string): Refusal | undefined {
  const rule = index.hasBlocked ? findRule(index, place)?.rule : undefined;
  return rule?.blocked === true ? blockedBy(rule) : undefined;
}

function blockedBy(rule: MirrorRule): Refusal {
  return { reason: 'Blocked', message: `The rule for "${rule.prefix}" blocks it` };
}
