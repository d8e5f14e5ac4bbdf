/** Inputs of the adapter's programs: environments of Jobs, targets, receipts, and the messages of Sentinel. */

import { recordOf } from '../../runtime/core/record.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { readReceipt } from '../../runtime/pull-secret-adapter/adapter/observe.ts';
import { clusterDocument } from '../../runtime/pull-secret-adapter/cluster.ts';
import { readJobConfig } from '../../runtime/pull-secret-adapter/job/config.ts';
import { JobError } from '../../runtime/pull-secret-adapter/job/gcp-error.ts';
import { accountDomain, fillTemplate, readTraceparent } from '../../runtime/pull-secret-adapter/names.ts';
import { placeText, readPlace } from '../../runtime/pull-secret-adapter/places.ts';
import { sentinelSettings } from '../../runtime/pull-secret-adapter/sentinel/options.ts';
import { AUTHS, jsonOf } from './corpus.ts';
import { holds, type Parser, valueOf } from './parser.ts';

export const ADAPTER_PARSERS: readonly Parser[] = [
  {
    name: 'environment of a Job',
    corpus: [
      jsonOf({
        CLUSTER_ID: 'cls-123',
        GCP_PROJECT_ID: 'cust-project',
        SECRET_NAME: 'hyperfleet-cls-123-pull-secret',
        SECRET_LABELS: 'a=b,c=d',
        REQUEST_TIMEOUT: '30s',
        SECRET_MANAGER_ENDPOINT: 'https://secretmanager.googleapis.com',
        REPLICATION: 'europe-west1,us-east1',
      }),
      jsonOf({ JOB_MODE: 'delete', CLUSTER_ID: 'cls-123', PLACES: '["namespaces/a/secrets/b"]' }),
      jsonOf({ JOB_MODE: 'delete', CLUSTER_ID: 'cls-123', MANAGEMENT_NAMESPACE: 'Clusters/cls-1' }),
    ],
    unit: ',a=b',
    run: (text) => {
      const value = valueOf(text);
      const pairs = Object.entries(typeof value === 'object' && value !== null ? value : {});
      const env = Object.fromEntries(
        pairs.map(([name, one]) => [name, typeof one === 'string' ? one : jsonOf(one)]),
      );
      try {
        const read = readJobConfig(env, redact(AUTHS));
        const good = read.places.every((place) => readPlace(placeText(place)) !== undefined);
        holds(read.mode === 'store' || good, 'places of a deletion');
        return read;
      } catch (error) {
        if (error instanceof JobError) return error.reason;
        throw error;
      }
    },
  },
  {
    name: 'place of a secret',
    corpus: [
      'namespaces/a/secrets/b',
      'projects/p/secrets/s',
      'projects/p/locations/l/secrets/s',
      '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      'grant/a@uid#selector',
    ],
    unit: '/a',
    run: (text) => [readPlace(text), readTraceparent(text), Object.keys(readReceipt({ [text]: 'x' }))],
  },
  {
    name: 'receipt of a deletion',
    corpus: [jsonOf({ 'namespaces/a/secrets/b': 'deleted', 'projects/p/secrets/s': 'absent' })],
    unit: '"a":"b",',
    run: (text) => readReceipt(valueOf(text)),
  },
  {
    name: 'messages of Sentinel',
    corpus: [
      jsonOf({
        message_decision: { params: { a: 'resource.generation' }, result: 'a > 1' },
        message_data: { id: 'resource.id', kind: '"Cluster"' },
      }),
      jsonOf({ message_data: { id: 'resource.id' } }),
    ],
    unit: '(',
    run: (text) => Object.keys(sentinelSettings({}, recordOf(valueOf(text))).messages),
  },
  {
    name: 'template of a name',
    corpus: ['hyperfleet-{id}-pull-secret', 'example.com:{project}', '{nothing}'],
    unit: '{id}',
    run: (text) => [
      fillTemplate(text, clusterDocument.parse({ id: 'cls-1', name: 'a', generation: 1 })),
      accountDomain(text),
    ],
  },
];
