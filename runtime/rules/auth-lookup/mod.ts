/**
 * Which credential is tried for an image: the kubelet and containers/image, each by its own rule.
 *
 * - `containers.ts`: Which credential containers/image (CRI-O, podman, skopeo) uses for a repository
 * - `image-name.ts`: What a person should know about the name of an image, as it is written in a pod
 * - `image-reference.ts`: Image references as the kubelet, CRI-O and containerd read them
 * - `kubelet.ts`: Which credentials the kubelet tries for an image, in which order
 * - `match-images.ts`: `matchImages` patterns, as the kubelet compares them with an image
 * - `pull-attempts.ts`: The attempts behind an explanation
 * - `read-source.ts`: A document with credentials is read once, however many images are looked up in it
 *
 * @module
 */
export {};
