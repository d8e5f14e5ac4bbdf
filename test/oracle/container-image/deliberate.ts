/**
 * Deliberate differences from containers/image: a predicate over the input, with a reason. An input that such a
 * predicate selects is not compared.
 */
export interface Deliberate {
  readonly when: (asked: string) => boolean;
  readonly reason: string;
}

/** Deliberate differences for images. */
export const IMAGES: readonly Deliberate[] = [
  {
    when: (image) => image.startsWith('['),
    reason:
      'an IPv6 address may be a host, as it may be for the kubelet and containerd; containers/image has a grammar from before that',
  },
];

/** Whether an input is excluded from the comparison. */
export function isDeliberate(list: readonly Deliberate[], asked: string): boolean {
  return list.some(({ when }) => when(asked));
}
