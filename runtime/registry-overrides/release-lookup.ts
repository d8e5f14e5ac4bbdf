/**
 * How HyperShift's operators address images without a container runtime: a release image is looked up at each mirror in turn, a
 * component of it is renamed to the first one. Both are rewritten as `--registry-overrides` says. What reads an image is an argument.
 */

import { PullwrightError } from '../core/errors.ts';
import { parseImageReference } from '../core/image-reference.ts';
import { type MirrorIndex, resolveMirrors } from '../core/mirrors/resolve.ts';
import { replaceRegistry } from './overrides.ts';

/** What a look-up follows. */
export interface ReleasePlaces {
  readonly mirrors: MirrorIndex;
  /** Targets of `--registry-overrides`. */
  readonly overrides: ReadonlyMap<string, string>;
}

/** A pull source that was tried before, and its error. */
export interface PlaceFailure {
  readonly reference: string;
  readonly message: string;
}

export interface FoundRelease<T> {
  readonly release: T;
  /** The reference that was read. */
  readonly from: string;
  readonly failures: readonly PlaceFailure[];
}

/**
 * Reads the release `image` with `read`, which gets a whole reference and rejects when it cannot be read there.
 *
 * @throws PullwrightError `ReleaseUnreadable` when no pull source has it, with the error of each
 */
export async function lookUpRelease<T>(
  image: string,
  { mirrors, overrides }: ReleasePlaces,
  read: (reference: string) => Promise<T>,
): Promise<FoundRelease<T>> {
  const failures: PlaceFailure[] = [];
  for (const candidate of resolveMirrors(mirrors, image).candidates) {
    const from = replaceRegistry(candidate.reference, overrides);
    try {
      return { release: await read(from), from, failures };
    } catch (error) {
      failures.push({ reference: from, message: error instanceof Error ? error.message : 'unknown failure' });
    }
  }
  const places = failures.map(({ reference, message }) => `${reference}: ${message}`);
  const tried = places.length === 0 ? 'every pull source is blocked' : places.join('; ');
  throw new PullwrightError(`Cannot read release "${image}": ${tried}`, { code: 'ReleaseUnreadable' });
}

/**
 * The address of `image`, a component of a release, for what has no container runtime: its first mirror, rewritten as
 * `--registry-overrides` says. An image without a rule stays as it is; so does one whose every mirror is blocked.
 */
export function translateImage(image: string, { mirrors, overrides }: ReleasePlaces): string {
  if (!parseImageReference(image).ok) return image;
  const { rule, candidates } = resolveMirrors(mirrors, image);
  const first = rule === undefined ? image : (candidates[0]?.reference ?? image);
  return replaceRegistry(first, overrides);
}
