/**
 * When a node writes a file and restarts a unit: the state machine, its journal, breaker, spread and turns.
 *
 * - `breaker.ts`: Breakers
 * - `canary.ts`: One node of each pool gets new content first
 * - `image-probe.ts`: What registries said to the first node of a pool
 * - `journal.ts`: The journal of a rollout
 * - `rollout.ts`: The rollout of one file of a node
 * - `spread.ts`: Spreads the restarts of a fleet over a window without anybody to ask
 * - `turns.ts`: Turns of a fleet at a restart
 *
 * @module
 */
export {};
