/**
 * From mirror sets and registries.conf to the places that an image is asked for, in order.
 *
 * - `collect.ts`: Mirror sets of a cluster (ImageContentSourcePolicy, ImageDigestMirrorSet, ImageTagMirrorSet)
 *   become rules, and problems that their authors should know about
 * - `conf.ts`: Rules as a drop-in for `/etc/containers/registries.conf.d`, in the plain form that registries-
 *   conf-plain.ts reads without a TOML parser
 * - `fix.ts`: The nearest fix of a pull that passes over its mirrors, as an object to apply
 * - `lint.ts`: What is wrong, or not as its author thinks, with a group of mirror sets
 * - `mirrors.ts`: The one mirror resolver
 * - `order.ts`: Several lists of mirrors for one source become one list, in the order that the nodes get
 * - `pull-sources.ts`: Where the container runtime really pulls an image from
 * - `reference-text.ts`: What the runtime makes of the text of a reference before and after a rule rewrites it
 * - `registries-conf-plain.ts`: The plain form of `registries.conf`
 * - `registries-conf-table.ts`: Values out of the tables of a `registries.conf`, with the refusals that the
 *   runtime has for a wrong type
 * - `registries-conf.ts`: `registries.conf` (version 2) as containers/image reads it
 * - `registry-prefix.ts`: How an image matches the `prefix` of a registry
 * - `short-name-aliases.ts`: The table `aliases` of a `registries.conf`
 * - `syntax.ts`: What may stand as source and as mirror
 *
 * @module
 */
export {};
