/**
 * Where we read something differently from containers/image on purpose: a predicate over the input, and why. What such a
 * predicate selects is not compared.
 */
export interface Deliberate {
  readonly when: (asked: string) => boolean;
  readonly reason: string;
}

/** Of images. */
export const IMAGES: readonly Deliberate[] = [
  {
    when: (image) => image.startsWith('['),
    reason:
      'an IPv6 address may be a host, as it may be for the kubelet and containerd; containers/image has a grammar from before that',
  },
];

/** Whether something is not compared. */
export function isDeliberate(list: readonly Deliberate[], asked: string): boolean {
  return list.some(({ when }) => when(asked));
}
