/**
 * Whether a cluster can take an installation, and whether it has it.
 *
 * - `check.ts`: An installation before it is made, and after
 * - `cluster.ts`: Version, definitions, kinds, priority classes and rights of a cluster
 * - `installed.ts`: Whether what was applied is there, served and at work
 * - `nodes.ts`: Which nodes are eligible, what they run, and whether their pods are let in
 * - `owners.ts`: Other tools that write the same objects
 * - `types.ts`: What an installation is checked with, and what is said of it
 *
 * @module
 */
export {};
