/**
 * From mirror sets to the overrides that a control plane reads.
 *
 * - `lookup.ts`: Which references the existing system's two look-ups would ask for, answered by the one
 *   resolver
 * - `olm-catalogs.ts`: The catalogs of the Operator Lifecycle Manager
 * - `reference.ts`: An image reference split as the existing system splits it
 * - `registry-overrides.ts`: The text formats of the existing system
 *
 * @module
 */
export {};
