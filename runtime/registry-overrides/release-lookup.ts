/** Finds a release image through the mirrors: each in order, then the image itself. What reads an image is an argument. */

import { releaseCandidates } from '../rules/registry-overrides/lookup.ts';
import { type OverrideMap, replaceRegistry } from '../rules/registry-overrides/registry-overrides.ts';

/** For whom a release is looked up. What runs on nodes stays canonical: CRI-O mirrors by itself there. */
export type Plane = 'control-plane' | 'user';

/** Which of the two mechanisms each look-up follows. */
export const LOOKUP_FOLLOWS: Readonly<
  Record<Plane, { readonly registryOverrides: boolean; readonly imageRegistryMirrors: boolean }>
> = {
  'control-plane': { registryOverrides: true, imageRegistryMirrors: true },
  user: { registryOverrides: false, imageRegistryMirrors: true },
};

export interface ReleaseRequest {
  readonly image: string;
  readonly plane: Plane;
  /** Mirrors of the mirror sets. */
  readonly overrides?: OverrideMap | undefined;
  /** Targets of `--registry-overrides`. */
  readonly registryOverrides?: ReadonlyMap<string, string> | undefined;
}

export interface ReleaseFound<T> {
  readonly release: T;
  /** The reference that was read. */
  readonly from: string;
  /** The mirror that answered; absent when it was the image itself. */
  readonly mirroredReleaseImage?: string;
  /** Mirrors that were tried before, with their reasons. */
  readonly failures: readonly { readonly image: string; readonly reason: string }[];
}

/**
 * Reads the release with `read`, which gets the whole reference and rejects when it cannot be read. Rejects with the error of
 * the image itself when nothing can be read.
 */
export async function lookUpRelease<T>(
  request: ReleaseRequest,
  read: (image: string) => Promise<T>,
): Promise<ReleaseFound<T>> {
  const follows = LOOKUP_FOLLOWS[request.plane];
  const flag = follows.registryOverrides ? (request.registryOverrides ?? new Map()) : new Map();
  const mirrors = follows.imageRegistryMirrors
    ? releaseCandidates(request.image, request.overrides ?? new Map())
    : [];
  const failures: { image: string; reason: string }[] = [];
  for (const mirror of mirrors) {
    const from = replaceRegistry(mirror, flag);
    try {
      return { release: await read(from), from, mirroredReleaseImage: mirror, failures };
    } catch (error) {
      failures.push({ image: mirror, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  const from = replaceRegistry(request.image, flag);
  return { release: await read(from), from, failures };
}
