/** The result of a Job comes from its own container, regardless of other containers in the pod. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { viewJob, viewRecord } from '../../runtime/pull-secret-adapter/adapter/observe.ts';
import { jobObject } from '../../runtime/pull-secret-adapter/adapter/resources.ts';
import { REVOKE_ANNOTATION } from '../../runtime/pull-secret-adapter/names.ts';

import { DEFAULT_SETTINGS, OWN_JOB_VARIABLES } from '../../runtime/pull-secret-adapter/options.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import { cluster } from './reconcile-parts.ts';

const JOB: KubeObject = {
  ...meta('batch/v1 Job', { name: 'pullsecret-a-gen1', uid: 'j' }),
  status: { conditions: [{ type: 'Failed', status: 'True' }] },
};

function ended(name: string, exitCode: number, finishedAt: string, reason?: string): unknown {
  const message =
    reason === undefined ? 'bye' : JSON.stringify({ status: 'failure', reason, message: 'm', details: {} });
  return { name, state: { terminated: { exitCode, finishedAt, message } } };
}

function pod(owner: string, containerStatuses: readonly unknown[]): KubeObject {
  const ownerReferences = [{ apiVersion: 'batch/v1', kind: 'Job', name: 'x', uid: owner }];
  return { ...meta('v1 Pod', { name: 'p', ownerReferences }), status: { containerStatuses } };
}

interface Row extends Case {
  readonly pods: readonly KubeObject[];
  readonly exitCode: number | undefined;
  readonly says: string | undefined;
}

const OWN = ended('job', 77, '2026-01-01T00:00:01Z', 'IamPermissionDenied');
const ROWS: readonly Row[] = [
  {
    name: 'a side-car that ends after it',
    reason: 'it ends because the work is done, and says nothing about it',
    pods: [pod('j', [ended('istio-proxy', 0, '2026-01-01T00:00:09Z'), OWN])],
    exitCode: 77,
    says: 'IamPermissionDenied',
  },
  {
    name: 'a side-car with a result of its own',
    reason: 'whoever writes one there is not believed',
    pods: [pod('j', [OWN, ended('other', 0, '2026-01-01T00:00:09Z', 'InvalidPullSecret')])],
    exitCode: 77,
    says: 'IamPermissionDenied',
  },
  {
    name: 'only a side-car has ended',
    reason: 'nothing is known',
    pods: [
      pod('j', [ended('istio-proxy', 1, '2026-01-01T00:00:09Z'), { name: 'job', state: { running: {} } }]),
    ],
    exitCode: undefined,
    says: undefined,
  },
  {
    name: 'two pods',
    reason: 'the one that ended last counts',
    pods: [pod('j', [ended('job', 75, '2026-01-01T00:00:05Z', 'QuotaExceeded')]), pod('j', [OWN])],
    exitCode: 75,
    says: 'QuotaExceeded',
  },
  {
    name: 'a pod of an earlier Job of the same name',
    reason: 'not of this one',
    pods: [pod('other', [ended('job', 75, '2026-01-01T00:00:05Z', 'QuotaExceeded')]), pod('j', [OWN])],
    exitCode: 77,
    says: 'IamPermissionDenied',
  },
];
table(test, ROWS, ({ pods, exitCode, says }) => {
  const view = viewJob(JOB, pods);
  assert.deepEqual([view.exitCode, view.result?.reason], [exitCode, says]);
});

test('what an earlier pod of the Job removed stays removed when the next one finds nothing there', () => {
  const places = ['namespaces/clusters-a/secrets/pull-secret', 'projects/acme/secrets/a'] as const;
  const told = (second: number, receipt: Readonly<Record<string, string>>): KubeObject => {
    const message = JSON.stringify({
      status: 'success',
      reason: 'SecretDeleted',
      message: 'm',
      details: {},
      receipt,
    });
    const terminated = { exitCode: 0, finishedAt: `2026-01-01T00:00:0${second}Z`, message };
    return pod('j', [{ name: 'job', state: { terminated } }]);
  };
  const { result } = viewJob(JOB, [
    told(2, { [places[0]]: 'was not there', [places[1]]: 'removed' }),
    told(1, { [places[0]]: 'removed' }),
  ]);
  assert.deepEqual(result?.receipt, { [places[0]]: 'removed', [places[1]]: 'removed' });
});

test('who asks for a revocation is answered now, by a Job that knows the request', () => {
  const record = viewRecord(
    meta('v1 ConfigMap', { name: 'r', annotations: { [REVOKE_ANNOTATION]: 'leaked' } }),
  );
  assert.deepEqual([record.revokeRequest, record.verifyRequest], ['leaked', 'leaked']);
  const task = { job: 'j', purpose: 'store', attempt: 1, ...record } as const;
  const env = environmentOf(jobObject({ cluster: cluster(), settings: DEFAULT_SETTINGS }, task));
  assert.equal(env.get('REVOKE_PREVIOUS'), 'leaked');
});

function environmentOf(job: KubeObject): ReadonlyMap<string, string | undefined> {
  const { spec } = job as unknown as JobSpec;
  return new Map(spec.template.spec.containers[0].env.map(({ name, value }) => [name, value]));
}

test('no further environment says in place of the adapter whose secret goes where, and under which proof', () => {
  const forged = Object.fromEntries([...OWN_JOB_VARIABLES].map((name) => [name, 'forged']));
  const settings = { ...DEFAULT_SETTINGS, jobEnv: { ...forged, GCP_API_TIMEOUT: '5s' } };
  const store = { job: 'j', purpose: 'store', attempt: 1, places: [], traceparent: '00-1-2-01' } as const;
  const places = ['projects/acme/secrets/a'];
  for (const task of [store, { ...store, purpose: 'delete', places } as const]) {
    const own = environmentOf(jobObject({ cluster: cluster(), settings: DEFAULT_SETTINGS }, task));
    const names = [...own.keys()].filter((name) => name !== 'GCP_API_TIMEOUT');
    assert.deepEqual(
      names.filter((name) => !OWN_JOB_VARIABLES.has(name)),
      [],
      'what the adapter says is refused elsewhere',
    );
    const env = environmentOf(jobObject({ cluster: cluster(), settings }, task));
    for (const name of names) assert.equal(env.get(name), own.get(name), name);
    assert.equal(env.get('GCP_API_TIMEOUT'), '5s');
  }
});

interface JobSpec {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly [
          { readonly env: readonly { readonly name: string; readonly value?: string }[] },
        ];
      };
    };
  };
}
