/**
 * The report as a page of the reconciler: who may see which part of it.
 *
 * - `bucket.ts`: A token bucket
 * - `request.ts`: What a request for the report's page asks for, and with which token
 * - `reviews.ts`: What the API server is asked about whoever wants the report, and what its answers mean
 * - `sign-in.ts`: The page that a browser gets before it has shown a token
 * - `tenant-view.ts`: What the owner of one namespace may see of a cluster's report
 *
 * @module
 */
export {};
