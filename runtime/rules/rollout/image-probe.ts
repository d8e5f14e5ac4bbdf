/** What registries said to the first node of a pool, image by image: whether the others may follow. */

/** One place that was asked for an image: a mirror, or the source itself. */
export interface ProbedPlace {
  readonly reference: string;
  /** `yes`: the manifest is there for this credential; `no`: refused, or not there; `silent`: nobody gave an answer that counts. */
  readonly answer: 'yes' | 'no' | 'silent';
  /** A sentence without its end, and without any value. */
  readonly says: string;
}

export interface ProbedImage {
  readonly image: string;
  /** In the order in which the node tries them. */
  readonly places: readonly ProbedPlace[];
}

/** The outcome for all images. */
export interface ImageProbe {
  readonly state: 'Passed' | 'Failed' | 'Unanswered';
  /** A sentence without its end, and without any value. */
  readonly says: string;
}

/** What a text of many registries comes to at most. */
const MOST = 700;

/**
 * Judges. An image can be pulled when one place gives it, as the container runtime goes from one to the next; it cannot when one
 * refuses and none gives it. Where nobody answers, nothing is shown.
 *
 * @example
 * ```ts
 * import { judgeImages } from './image-probe.ts';
 * import assert from 'node:assert/strict';
 *
 * const places = [{ reference: 'quay.io/acme/web:1', answer: 'no', says: '401' }] as const;
 * assert.deepEqual(judgeImages([{ image: 'quay.io/acme/web:1', places }]), {
 *   state: 'Failed',
 *   says: 'cannot pull quay.io/acme/web:1: 401',
 * });
 * ```
 */
export function judgeImages(images: readonly ProbedImage[]): ImageProbe {
  const judged = images.map(judge);
  const failed = judged.filter(({ state }) => state === 'Failed');
  const silent = judged.filter(({ state }) => state === 'Unanswered');
  const [shown, state] =
    failed.length > 0
      ? [failed, 'Failed' as const]
      : silent.length > 0
        ? [silent, 'Unanswered' as const]
        : [judged, 'Passed' as const];
  return { state, says: cut(shown.map(({ says }) => says).join('; ')) };
}

function judge({ image, places }: ProbedImage): ImageProbe {
  const given = places.find(({ answer }) => answer === 'yes');
  if (given !== undefined) {
    const where = given.reference === image ? '' : ` from ${given.reference}`;
    return { state: 'Passed', says: `can pull ${image}${where}` };
  }
  const refused = places.some(({ answer }) => answer === 'no');
  const says = places.map((place) => place.says).join(', ') || 'there is no place to pull it from';
  return refused
    ? { state: 'Failed', says: `cannot pull ${image}: ${says}` }
    : { state: 'Unanswered', says: `nobody knows whether ${image} can be pulled: ${says}` };
}

function cut(text: string): string {
  return text.length > MOST ? `${text.slice(0, MOST - 1)}…` : text;
}

/** How a node reports it: for which images, what came of it, in which words. */
export function probeFacts(
  images: readonly string[],
  { state, says }: ImageProbe,
): Readonly<Record<string, string>> {
  return { probe: state, probeImages: images.join(' '), probeSays: says };
}

/**
 * Reads such a report; undefined where it is none, or is about other images.
 *
 * @example
 * ```ts
 * import { probeFacts, readProbe } from './image-probe.ts';
 * import assert from 'node:assert/strict';
 *
 * const facts = probeFacts(['quay.io/acme/web:1'], { state: 'Passed', says: 'can pull' });
 * assert.equal(readProbe(facts, ['quay.io/acme/web:1'])?.state, 'Passed');
 * assert.equal(readProbe(facts, ['quay.io/acme/web:2']), undefined);
 * ```
 */
export function readProbe(
  facts: Readonly<Record<string, unknown>>,
  images: readonly string[],
): ImageProbe | undefined {
  const { probe: state, probeImages, probeSays: says } = facts;
  if (state !== 'Passed' && state !== 'Failed' && state !== 'Unanswered') return undefined;
  if (probeImages !== images.join(' ') || typeof says !== 'string') return undefined;
  return { state, says };
}
