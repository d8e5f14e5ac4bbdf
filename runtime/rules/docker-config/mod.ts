/**
 * Pull secrets: read, judged, merged and written.
 *
 * - `additional.ts`: Which entries of the tenant's pull secret go into the merge, and what its owner is told
 *   about each
 * - `canonical.ts`: The form in which a pull secret is written
 * - `docker-config.ts`: The document of a pull secret, judged entry by entry
 * - `entry-members.ts`: Where the entries of a pull secret stand, before anything is judged
 * - `entry.ts`: One entry of `auths`
 * - `expiry.ts`: When a credential ends, as far as it says so itself
 * - `fields.ts`: The fields of the structs into which Go decodes a pull secret
 * - `go-reader.ts`: What the Go programs make of the document of a pull secret, error texts included
 * - `merge.ts`: The merge of the platform's pull secret with the tenant's
 * - `registry-key.ts`: What a key of `auths` means
 * - `removal-guard.ts`: Holds a change that would take credentials from many pods until it is confirmed
 * - `secret-text.ts`: A Secret as a source of credentials
 * - `upstream.ts`: What HyperShift's node agent takes for a docker config
 * - `usable.ts`: The part of a pull secret that may be written where the kubelet and CRI-O read it
 * - `validate.ts`: What is wrong with a pull secret, or not as its author thinks, before it is applied
 *
 * @module
 */
export {};
