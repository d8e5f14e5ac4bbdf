/**
 * The nearest fix of a pull that passes over its mirrors, as an object to apply.
 *
 * The textbook fault of a disconnected cluster: an image is named by tag, and the mirrors of its source are in an
 * ImageDigestMirrorSet, which serves digests only. Nodes then ask the source alone, which they cannot reach.
 */
import type { KubeObject } from '../kubernetes/object.ts';
import type { Resolution, SkippedCandidate } from './mirrors.ts';

export interface MirrorFix {
  readonly code: 'MirrorsServeDigestsOnly' | 'MirrorsServeTagsOnly' | 'RuntimeGivesUp';
  /** What is wrong, naming the mirror that is skipped. */
  readonly message: string;
  /** What to do, in one sentence. */
  readonly fix: string;
  /** What to apply; absent where an object cannot help. */
  readonly object?: KubeObject;
}

export interface FixOptions {
  /** For nodes of a hosted cluster there is no ImageTagMirrorSet. @default {false} */
  readonly hosted?: boolean;
  /** Digest of the image, where it is known. */
  readonly digest?: string | undefined;
}

/**
 * The fix for a resolution in which no mirror is tried although its source has some; undefined where nothing is wrong.
 *
 * @example
 * ```ts
 * import { mirrorFix } from './fix.ts';
 * import { compileMirrors, resolveMirrors } from './mirrors.ts';
 * import assert from 'node:assert/strict';
 *
 * const index = compileMirrors([{
 *   prefix: 'quay.io/team', location: 'quay.io/team', blocked: false, insecure: false,
 *   mirrors: [{ location: 'mirror.example.com/team', pullFrom: 'digest-only' }],
 * }]);
 * const fix = mirrorFix(resolveMirrors(index, 'quay.io/team/app:1'));
 * assert.equal(fix?.object?.kind, 'ImageTagMirrorSet');
 * assert.equal(mirrorFix(resolveMirrors(index, `quay.io/team/app@sha256:${'a'.repeat(64)}`)), undefined);
 * ```
 */
export function mirrorFix(resolution: Resolution, options: FixOptions = {}): MirrorFix | undefined {
  if (resolution.refusal !== undefined) return givenUp(resolution, resolution.refusal);
  if (resolution.candidates.some(({ kind }) => kind === 'mirror')) return undefined;
  const wanted = resolution.byDigest ? 'TagOnly' : 'DigestOnly';
  const passed = resolution.skipped.filter(({ reason }) => reason === wanted);
  const [first] = passed;
  if (first === undefined) return undefined;
  return resolution.byDigest
    ? digestFix(resolution, passed, first)
    : tagFix(resolution, passed, first, options);
}

function tagFix(
  { image, rule, candidates }: Resolution,
  passed: readonly SkippedCandidate[],
  first: SkippedCandidate,
  { hosted = false, digest }: FixOptions,
): MirrorFix {
  const rest = candidates.length === 0 ? 'no place is left' : 'only the source is asked';
  const set = first.origin === undefined ? '' : ` (${first.origin.kind}/${first.origin.name})`;
  const message = `"${image}" is named by tag, and mirror "${first.location}"${set} serves digests only: it is skipped, and ${rest}`;
  const name = image.slice(0, image.lastIndexOf(':'));
  const byDigest =
    digest === undefined
      ? `name the image by digest (pullwright mirrors ${image} --probe shows it)`
      : `name the image ${name}@${digest}`;
  if (hosted) return { code: 'MirrorsServeDigestsOnly', message, fix: sentence(byDigest) };
  const object = setOf('ImageTagMirrorSet', 'imageTagMirrors', 'tags', { rule, passed, first });
  const fix = `${sentence(byDigest)}, or apply ImageTagMirrorSet/${object.metadata.name}`;
  return { code: 'MirrorsServeDigestsOnly', message, fix, object };
}

function digestFix(
  { image, rule }: Resolution,
  passed: readonly SkippedCandidate[],
  first: SkippedCandidate,
): MirrorFix {
  const object = setOf('ImageDigestMirrorSet', 'imageDigestMirrors', 'digests', { rule, passed, first });
  return {
    code: 'MirrorsServeTagsOnly',
    message: `"${image}" is named by digest, and mirror "${first.location}" serves tags only: it is skipped`,
    fix: `Apply ImageDigestMirrorSet/${object.metadata.name}`,
    object,
  };
}

function givenUp({ image, skipped }: Resolution, refusal: string): MirrorFix {
  const bad = skipped.find(({ reason }) => reason === 'InvalidReference');
  const place = bad?.kind === 'mirror' ? `mirror "${bad.location}"` : `location "${bad?.location ?? ''}"`;
  return {
    code: 'RuntimeGivesUp',
    message: `the runtime pulls "${image}" from nowhere (${refusal}): ${place} gives "${bad?.reference ?? ''}"`,
    fix: `Give ${place} a repository as its source has one`,
  };
}

interface SetParts {
  readonly rule: Resolution['rule'];
  readonly passed: readonly SkippedCandidate[];
  readonly first: SkippedCandidate;
}

/** A set of the other kind with the same mirrors; the policy must be the same, else the operator refuses both. */
function setOf(kind: string, list: string, ending: string, { rule, passed, first }: SetParts): KubeObject {
  const base = first.origin?.name ?? 'mirrors';
  const entry = {
    source: rule?.prefix ?? '',
    mirrors: [...new Set(passed.map(({ location }) => location))],
    ...(rule?.never === true ? { mirrorSourcePolicy: 'NeverContactSource' } : {}),
  };
  const name = `${base.slice(0, 200)}-${ending}`;
  return { apiVersion: 'config.openshift.io/v1', kind, metadata: { name }, spec: { [list]: [entry] } };
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
