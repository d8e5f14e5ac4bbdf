/**
 * The one mirror resolver: the pull sources of an image, in order, and why others are not tried.
 *
 * Rules come from mirror sets (mirrors-collect.ts), from `registries.conf` (registries-conf.ts) or from override texts
 * (registry-overrides.ts); all have the shape of one `[[registry]]` table. The longest source wins, at the boundaries of
 * path segments; `*.example.org` covers every subdomain; mirrors are tried in the order in which they are written, the source
 * last; a mirror is not mirrored again. Whether a pull source is blocked is decided by its own rule: a blocked source
 * whose `location` is elsewhere is still pulled from there.
 *
 * Source of the rule: containers/image `sysregistriesv2` (`FindRegistry`, `PullSourcesFromReference`) and its pull loop, held
 * against their code in test/oracle/container-image and against skopeo in test/registry.
 *
 * A blocked source that moved is tried: containers/image rewrites the reference first and then looks up whether the location it is
 * about to contact is blocked.
 */

import { formatImageReference, MAX_PATH_LENGTH, parseImageReference } from '../image-reference.ts';
import type { Mirror, Registry } from './registries-conf.ts';

// What the runtime makes of the text of a reference before and after a rule rewrites it.
// Source of the rule: containers/image `docker/reference` and `sysregistriesv2` (`rewriteReference`).

/** Form of nearly every reference. All that it matches is canonical, so that only the rest needs the whole grammar. */
const PLAIN =
  /^(?!(?:index\.)?docker\.io\/)[a-z0-9]+(?:-+[a-z0-9]+)*(?:\.[a-z0-9]+(?:-+[a-z0-9]+)*)+(?::[0-9]+)?(?:\/[a-z0-9]+(?:[._-][a-z0-9]+)*)+(?::[a-z0-9][a-z0-9.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;

/**
 * Whether the runtime takes it as it is: a host, a repository in lower case, and `library/` where Docker Hub needs it. Its
 * grammar has no IPv6 addresses.
 */
export function isCanonical(reference: string): boolean {
  if (reference.length <= MAX_PATH_LENGTH && PLAIN.test(reference)) return true;
  if (reference.startsWith('[')) return false;
  const parsed = parseImageReference(reference);
  return parsed.ok && formatImageReference(parsed.reference) === reference;
}

/** In the words of containers/image. */
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

/** Where a rule is written, for a person. */
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

/** Where a rule or a mirror was written. */
export interface RuleOrigin {
  readonly kind: string;
  readonly name: string;
  /** Place within the object, such as `spec.imageDigestMirrors[0].mirrors[1]`. */
  readonly path: string;
}

export interface RuleMirror extends Mirror {
  readonly origin?: RuleOrigin;
}

/** One source with its mirrors, in the order in which they are tried. */
export interface MirrorRule extends Registry {
  readonly mirrors: readonly RuleMirror[];
  readonly origins?: readonly RuleOrigin[];
  /** Whether a mirror set says `NeverContactSource`; a source may be blocked for other reasons. Absent: no. */
  readonly never?: boolean;
}

/**
 * What a source is compared with: `runtime` (the name alone, and a source without port covers `host:port`, as
 * containers/image matches), `text` (the same, but tag and digest count) or `exact` (tag and digest count, and a source without
 * port does not cover `host:port`, as `--registry-overrides` matches; nor does a bare host cover `host:tag`).
 */
export type Ports = 'runtime' | 'text' | 'exact';

/** Rules made ready for look-up: the cost of one does not depend on their number. */
export interface MirrorIndex {
  readonly rules: readonly MirrorRule[];
  readonly bySource: ReadonlyMap<string, MirrorRule>;
  /** Rules for `*.example.org`, by `.example.org`. */
  readonly byDomain: ReadonlyMap<string, MirrorRule>;
  readonly hasBlocked: boolean;
  readonly ports: Ports;
}

export interface Candidate {
  /** Whole reference to ask for. */
  readonly reference: string;
  readonly kind: 'mirror' | 'source';
  /** Replacement of the matched source. */
  readonly location: string;
  /** Whether its certificate may be unverified. Absent: no. */
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

export interface SkippedCandidate extends Candidate {
  readonly reason: SkipReason;
  /** One sentence for a person. */
  readonly message: string;
}

export interface Resolution {
  /** The reference that was resolved: without the tag when there is a digest. */
  readonly image: string;
  readonly byDigest: boolean;
  /** The rule that decides; absent when none matches: then the image itself is the only candidate. */
  readonly rule?: MirrorRule;
  /** In the order in which they are tried. Empty when every pull source is blocked or refused. */
  readonly candidates: readonly Candidate[];
  readonly skipped: readonly SkippedCandidate[];
  /** Why the runtime rejects the image before it tries any pull source, in its own words. Then `candidates` is empty. */
  readonly refusal?: string;
}

/** Makes rules ready for {@link resolveMirrors}. Of two rules with one source the first counts; sources without text never do. */
export function compileMirrors(rules: readonly MirrorRule[], ports: Ports = 'runtime'): MirrorIndex {
  const bySource = new Map<string, MirrorRule>();
  const byDomain = new Map<string, MirrorRule>();
  let hasBlocked = false;
  // Backwards, so that the first of several stays without a look-up before each.
  for (let at = rules.length - 1; at >= 0; at -= 1) {
    const rule = rules[at];
    if (rule === undefined || rule.prefix === '') continue;
    const { prefix } = rule;
    bySource.set(prefix, rule);
    if (prefix.startsWith('*.')) byDomain.set(prefix.slice(1), rule);
    hasBlocked ||= rule.blocked;
  }
  return { rules, bySource, byDomain, hasBlocked, ports };
}

/**
 * Resolves one image. `image` is a reference with its host, as the runtime sees it (`docker.io/library/nginx:1`, not
 * `nginx:1`). Total: text that is not a reference matches as text.
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
  const invalid = index.ports === 'runtime' ? refusals.findIndex(isInvalid) : -1;
  if (invalid === -1) return { image: reference, byDigest, rule, ...parted(places, refusals) };
  const given = refusals.map((refusal) => refusal ?? GIVEN_UP);
  const refusal = refusalText(places[invalid]?.reference ?? '');
  return { image: reference, byDigest, rule, ...parted(places, given), refusal };
}

/** Every mirror of the rule, and the source last, for an image that goes on with `rest` after the source. */
function placesOf(rule: MirrorRule, reference: string, rest: string): Candidate[] {
  const places: Candidate[] = rule.mirrors.map((mirror) => ({
    reference: mirror.location + rest,
    kind: 'mirror',
    location: mirror.location,
    ...(mirror.insecure === true ? INSECURE : undefined),
    ...(mirror.origin === undefined ? undefined : { origin: mirror.origin }),
  }));
  // Only a wildcard has no location: it is not rewritten.
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

function parted(
  places: readonly Candidate[],
  refusals: readonly (Refusal | undefined)[],
): Pick<Resolution, 'candidates' | 'skipped'> {
  const candidates: Candidate[] = [];
  const skipped: SkippedCandidate[] = [];
  for (const [at, place] of places.entries()) {
    const refusal = refusals[at];
    if (refusal === undefined) candidates.push(place);
    else skipped.push({ ...place, ...refusal });
  }
  return { candidates, skipped };
}

function isInvalid(refusal: Refusal | undefined): boolean {
  return refusal?.reason === 'InvalidReference';
}

const GIVEN_UP = {
  reason: 'GivenUp',
  message: 'The runtime rejects the image before it tries any pull source',
} as const;

/** The runtime looks rules up for the name of an image, so that a source with a tag or a digest decides about none. */
function comparedPart(index: MirrorIndex, reference: string): string {
  return index.ports === 'runtime' ? withoutTagAndDigest(reference) : reference;
}

/** The rule that decides about `reference`, and how many of its characters the source covers. */
export function findRule(
  index: MirrorIndex,
  reference: string,
): { readonly rule: MirrorRule; readonly length: number } | undefined {
  const exact = findExact(index, reference);
  if (index.byDomain.size === 0) return exact;
  const wildcard = findWildcard(index, reference);
  if (wildcard === undefined || exact === undefined) return wildcard ?? exact;
  // The runtime compares the texts of the sources, not what they cover, and sorts `*` before everything else.
  return exact.rule.prefix.length > wildcard.rule.prefix.length ? exact : wildcard;
}

function findExact(
  index: MirrorIndex,
  reference: string,
): { readonly rule: MirrorRule; readonly length: number } | undefined {
  for (let end = reference.length; end > 0; end -= 1) {
    if (end < reference.length && !isBoundary(index, reference, end)) continue;
    const rule = index.bySource.get(reference.slice(0, end));
    if (rule !== undefined) return { rule, length: end };
  }
  return undefined;
}

function findWildcard(
  index: MirrorIndex,
  reference: string,
): { readonly rule: MirrorRule; readonly length: number } | undefined {
  const end = hostEnd(reference);
  for (let dot = reference.indexOf('.'); dot !== -1 && dot < end; dot = reference.indexOf('.', dot + 1)) {
    const suffix = reference.slice(dot, end);
    const rule = index.byDomain.get(suffix);
    // The runtime looks at the first occurrence of the suffix only: `*.a` does not cover `x.a.a`.
    if (rule !== undefined && reference.indexOf(suffix) === dot) return { rule, length: end };
  }
  return undefined;
}

/** Where the host name ends: at its port, its path, or the end. */
function hostEnd(reference: string): number {
  for (let at = 0; at < reference.length; at += 1) {
    const code = reference.charCodeAt(at);
    if (code === SLASH || code === COLON || code === AT) return at;
  }
  return reference.length;
}

const SLASH = 0x2f;
const COLON = 0x3a;
const AT = 0x40;

function isBoundary(index: MirrorIndex, reference: string, end: number): boolean {
  const code = reference.charCodeAt(end);
  if (code === SLASH || code === AT) return true;
  if (code !== COLON) return false;
  return index.ports !== 'exact' || reference.lastIndexOf('/', end - 1) !== -1;
}

type Refusal = { readonly reason: SkipReason; readonly message: string };

function refusalByUse(mirror: RuleMirror | undefined, byDigest: boolean): Refusal | undefined {
  if (mirror?.pullFrom === 'digest-only' && !byDigest)
    return { reason: 'DigestOnly', message: 'This mirror serves only images that are named by digest' };
  if (mirror?.pullFrom === 'tag-only' && byDigest)
    return { reason: 'TagOnly', message: 'This mirror serves only images that are named by tag' };
  return undefined;
}

/** Why the runtime refuses the pull source `reference` for `image` under `rule`. */
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
    message: `"${reference}" is not a valid image reference, and the runtime rejects the image: write source and mirror with the same parts (port, repository)`,
  };
}

/** A pull source is blocked by its own rule, also as a mirror of another: a blocked source that moved is tried. */
function blockAt(index: MirrorIndex, place: string): Refusal | undefined {
  const rule = index.hasBlocked ? findRule(index, place)?.rule : undefined;
  return rule?.blocked === true ? blockedBy(rule) : undefined;
}

function blockedBy(rule: MirrorRule): Refusal {
  return { reason: 'Blocked', message: `The rule for "${rule.prefix}" forbids to contact it` };
}
