// needs: promtool
/** When each alert of the adapter is up, and when it is not. */
import assert from 'node:assert/strict';
import { adapterAlerts } from '../../charts/pull-secret-adapter/alerts.ts';
import { type AlertCase, alertFaults } from '../support/alert-rules.ts';
import { table, test } from '../support/suite.ts';

const DEAD = 'pullwright_adapter_events_total{outcome="dead",pod="a"}';
const ERRORS = 'controller_runtime_reconcile_total{controller="pull-secret-adapter",result="error"}';
const POLLED = 'pullwright_sentinel_last_poll_timestamp_seconds';
/** Polls every minute: samples are at whole minutes. */
const POLLING = { [POLLED]: '0+60x60' };

function result(cluster: string, reason: string): string {
  return `pullwright_pull_secret_result{cluster="${cluster}",reason="${reason}"}`;
}

function job(state: 'failed' | 'complete', name: string, namespace = 'hyperfleet-system'): string {
  return `kube_job_${state}{namespace="${namespace}",job_name="${name}",condition="true"}`;
}

const ROWS: readonly AlertCase[] = [
  {
    name: 'everything in order',
    reason: 'nobody is woken up',
    series: {
      ...POLLING,
      [DEAD]: '0x60',
      [ERRORS]: '0x60',
      [result('a', 'SecretAvailable')]: '1x60',
      [result('b', 'PreconditionNotMet')]: '1x60',
      [job('complete', 'pullsecret-a-gen1')]: '1x60',
    },
    at: '40m',
    firing: {},
  },
  {
    name: 'the first dead letter',
    reason: 'the series stands at 0 before it',
    series: { ...POLLING, [DEAD]: '0x10 1x50' },
    at: '12m',
    firing: { PullSecretAdapterDeadLetters: [{ outcome: 'dead', pod: 'a' }] },
  },
  {
    name: 'a dead letter before the first scrape of a new pod',
    reason: 'the series begins at 1, and nothing increases',
    series: { ...POLLING, [DEAD]: '_x20 1x40' },
    at: '23m',
    firing: { PullSecretAdapterDeadLetters: [{ outcome: 'dead', pod: 'a' }] },
  },
  {
    name: 'a dead letter of an hour ago',
    reason: 'once is enough',
    series: { ...POLLING, [DEAD]: '0x2 1x60' },
    at: '50m',
    firing: {},
  },
  {
    name: 'passes that fail all the time',
    reason: 'the API or the cluster cannot be reached',
    series: { ...POLLING, [ERRORS]: '0+2x60' },
    at: '30m',
    firing: { PullSecretAdapterFailing: [{ controller: 'pull-secret-adapter', result: 'error' }] },
  },
  {
    name: 'passes that fail now and then',
    reason: 'they are tried again',
    series: { ...POLLING, [ERRORS]: '0x10 2x20 4x30' },
    at: '40m',
    firing: {},
  },
  {
    name: 'Sentinel stands still',
    reason: 'its last go is too long ago',
    series: { [POLLED]: '60x60' },
    at: '20m',
    firing: { PullSecretSentinelStalled: [{}] },
  },
  {
    name: 'Sentinel is not there',
    reason: 'no series at all',
    series: {},
    at: '20m',
    firing: { PullSecretSentinelStalled: [{}] },
  },
  {
    name: 'a Job whose first pod failed and whose second ended well',
    reason: 'the Job has not failed',
    series: {
      ...POLLING,
      'kube_job_status_failed{namespace="hyperfleet-system",job_name="pullsecret-a-gen1"}': '0x2 1x58',
      [job('complete', 'pullsecret-a-gen1')]: '_x4 1x56',
    },
    at: '40m',
    firing: {},
  },
  {
    name: 'a Job that fails, and is made again and again',
    reason: 'up also while the next attempt runs and no failed Job is there',
    series: { ...POLLING, [job('failed', 'pullsecret-a-gen1')]: '_x2 1x15 _x5 1x15 _x5 1x15' },
    at: '41m',
    firing: { PullSecretJobsFailing: [{}] },
  },
  {
    name: 'a Job that ended well at the second attempt',
    reason: 'over',
    series: {
      ...POLLING,
      [job('failed', 'pullsecret-a-gen1')]: '_x2 1x15 _x43',
      [job('complete', 'pullsecret-a-gen1')]: '_x20 1x40',
    },
    at: '22m',
    firing: {},
  },
  {
    name: 'a Job of somebody else',
    reason: 'not ours',
    series: {
      ...POLLING,
      [job('failed', 'pullsecret-a-gen1', 'other')]: '1x60',
      [job('failed', 'x')]: '1x60',
    },
    at: '40m',
    firing: {},
  },
  {
    name: 'a pull secret that can never work',
    reason: 'there is no Job whose failure would tell',
    series: {
      ...POLLING,
      [result('a', 'InvalidPullSecret')]: '1x60',
      [result('b', 'SecretAvailable')]: '1x60',
    },
    at: '20m',
    firing: { PullSecretClustersFailing: [{ reason: 'InvalidPullSecret' }] },
  },
  {
    name: 'a cluster that fails, with an attempt under way',
    reason: 'the reason changes for minutes, the alert does not',
    series: {
      ...POLLING,
      [result('a', 'IamPermissionDenied')]: '1x20 _x4 1x36',
      [result('a', 'JobInProgress')]: '_x21 1x3 _x36',
    },
    at: '23m',
    firing: { PullSecretClustersFailing: [{ reason: 'IamPermissionDenied' }] },
  },
  {
    name: 'a cluster that has come right, and one that has gone',
    reason: 'nobody is without',
    series: {
      ...POLLING,
      [result('a', 'QuotaExceeded')]: '1x20 _x40',
      [result('a', 'SecretAvailable')]: '_x20 1x40',
      [result('b', 'InvalidPullSecret')]: '1x20 _x40',
    },
    at: '27m',
    firing: {},
  },
];
table(test, ROWS, (row) => {
  assert.equal(alertFaults(adapterAlerts('hyperfleet-system', true), row), '');
});

test('every alert has a case in which it is up', () => {
  const up = new Set(ROWS.flatMap((row) => Object.keys(row.firing)));
  assert.deepEqual(
    adapterAlerts('hyperfleet-system', true)
      .map((one) => one.name)
      .filter((name) => !up.has(name)),
    [],
  );
});
