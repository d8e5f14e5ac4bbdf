/**
 * From mirror sets to the overrides that a control plane reads.
 *
 * - `asked-sources.ts`: Which sources the components of a control plane can ask for at all
 * - `convert-policy.ts`: An ImageContentSourcePolicy as the ImageDigestMirrorSet that means the same to nodes
 * - `meaning.ts`: What a value of `OPENSHIFT_IMG_OVERRIDES` means
 * - `olm-catalogs.ts`: The catalogs of the Operator Lifecycle Manager
 * - `override-map.ts`: The map that the existing system makes of a management cluster's mirror sets
 * - `reference.ts`: An image reference split as the existing system splits it
 * - `registry-overrides.ts`: The text formats of the existing system
 *
 * @module
 */
export {};
