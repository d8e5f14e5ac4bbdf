/** An answer that must not be believed, and our own cluster failing behind a good one. */
import { type ApiFaultCase, always, NOTHING } from './api-fault-case.ts';

export const WRONG_ANSWERS: readonly ApiFaultCase[] = [
  {
    name: 'a document that is none',
    reason: 'the same at every try',
    faults: () => always({ on: /^GET .*cls-1$/, status: 200, body: '{"id":"cls-1"}' }),
    message: /ClusterFetchFailed/,
    log: /ClusterFetchFailed.*no generation/,
    reported: NOTHING,
  },
  {
    name: 'the document of another cluster',
    reason: 'must never be acted on',
    faults: () => always({ on: /^GET .*cls-1$/, status: 200, body: '{"id":"cls-2","generation":1}' }),
    message: /ClusterFetchFailed/,
    log: /answered with another cluster/,
    reported: NOTHING,
  },
  {
    name: 'statuses without a list',
    reason: 'nothing may be concluded from it',
    faults: () => always({ on: /statuses\?/, status: 200, body: '{"items":null}' }),
    message: 'again',
    log: /without a list/,
    reported: NOTHING,
  },
  {
    name: 'our cluster refuses a Job',
    reason: 'said where the user looks, and tried again by the adapter itself',
    prepare: ({ cluster }) =>
      (cluster.refuse = (method, path) => (method === 'PATCH' && path.includes('/jobs/') ? 403 : undefined)),
    undo: ({ cluster }) => (cluster.refuse = undefined),
    message: 'done',
    log: /tried again.*403/,
    reported: ['False ManagementPermissionDenied', 'False ManagementPermissionDenied'],
  },
  {
    name: 'our cluster is down',
    reason: 'said where the user looks, and tried again by the adapter itself',
    prepare: ({ cluster }) => (cluster.refuse = () => 503),
    undo: ({ cluster }) => (cluster.refuse = undefined),
    message: 'done',
    log: /tried again.*503/,
    reported: ['False ManagementClusterUnavailable', 'False ManagementClusterUnavailable'],
  },
];
