/**
 * When a node writes a file and restarts a unit: the state machine, its journal, breaker and spread.
 *
 * - `breaker.ts`: Breakers
 * - `journal.ts`: The journal of a rollout
 * - `rollout.ts`: The rollout of one file of a node
 * - `spread.ts`: Spreads the restarts of a fleet over a window without anybody to ask
 *
 * @module
 */
export {};
