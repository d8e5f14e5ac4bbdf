/** What can be wrong with what is stored, and with what is asked for. */
import assert from 'node:assert/strict';
import { plantedAuth } from '../support/canary.ts';
import type { Bad } from './job-fault-answers.ts';
import { OURS } from './job-scenarios.ts';
import { PATH } from './run-job.ts';

const STORED = { code: 0, is: 'SecretStored', versions: 1 } as const;
const CORRUPT = { code: 76, is: 'PayloadCorrupted', versions: 1 } as const;
const NOT_CONFIGURED = { code: 78, is: 'InvalidConfiguration', versions: 0, calls: 0 } as const;
const NO_SECRET = { code: 65, is: 'InvalidPullSecret', versions: 0, calls: 0 } as const;
const OF_OTHERS = () => ({ labels: { ...OURS, 'cluster-id': 'cls-9' } });
const TOO_LARGE = JSON.stringify({
  auths: { 'quay.io': { auth: plantedAuth('large'), email: 'x'.repeat(66_000) } },
});

export const CONTENT: readonly Bad[] = [
  {
    name: 'damaged on its way back, once',
    reason: 'read again',
    faults: [{ rpc: 'AccessSecretVersion', corrupt: true, on: [1] }],
    ...STORED,
  },
  {
    name: 'damaged on its way back, always',
    reason: 'never report what cannot be read',
    faults: [{ rpc: 'AccessSecretVersion', corrupt: true }],
    ...CORRUPT,
  },
  {
    name: 'damaged on its way back, and a version is there',
    reason: 'no version is added for it',
    faults: [{ rpc: 'AccessSecretVersion', corrupt: true }],
    present: () => ({ labels: { ...OURS }, versions: [{ state: 'ENABLED', data: Buffer.from('x') }] }),
    ...CORRUPT,
  },
  {
    name: 'something else is stored',
    reason: 'nobody may read it as "latest"',
    faults: [{ rpc: 'AddSecretVersion', tamper: true }],
    ...CORRUPT,
    also: (double) => assert.equal(double.secrets.get(PATH)?.versions[0]?.state, 'DISABLED'),
  },
  {
    name: 'owned by another cluster',
    reason: 'never overwritten',
    present: OF_OTHERS,
    code: 73,
    is: 'SecretNotOwned',
    versions: 0,
    calls: 1,
  },
  {
    name: 'owned by another cluster, adopted',
    reason: 'adoption is for what names no owner',
    present: OF_OTHERS,
    env: { ADOPT: 'true' },
    code: 73,
    is: 'SecretNotOwned',
    versions: 0,
  },
  {
    name: 'without labels',
    reason: 'not ours',
    present: () => ({}),
    code: 73,
    is: 'SecretNotOwned',
    versions: 0,
  },
  {
    name: 'without labels, adopted',
    reason: 'said so',
    present: () => ({}),
    env: { ADOPT: 'true' },
    ...STORED,
  },
];

export const INPUT: readonly Bad[] = [
  {
    name: '65 KiB',
    reason: 'refused before any call',
    env: { PULL_SECRET_DATA: TOO_LARGE },
    ...NO_SECRET,
    says: /at most 65536/,
  },
  {
    name: 'entry without auth',
    reason: 'names the registry',
    env: { PULL_SECRET_DATA: '{"auths":{"quay.io":{}}}' },
    ...NO_SECRET,
    says: /"quay\.io"/,
  },
  {
    name: 'no JSON',
    reason: 'refused before any call',
    env: { PULL_SECRET_DATA: 'auths: {}' },
    ...NO_SECRET,
  },
  {
    name: 'no pull secret',
    reason: 'named',
    env: { PULL_SECRET_DATA: '' },
    ...NOT_CONFIGURED,
    says: /PULL_SECRET_DATA/,
  },
  {
    name: 'no file',
    reason: 'named',
    env: { PULL_SECRET_FILE: '/nonexistent/pull-secret' },
    ...NOT_CONFIGURED,
    says: /PULL_SECRET_FILE/,
  },
  {
    name: 'a file that is no text',
    reason: 'never stored otherwise than given',
    env: { PULL_SECRET_FILE: process.execPath },
    ...NO_SECRET,
    says: /UTF-8/,
  },
  {
    name: 'upper-case cluster',
    reason: 'does not fit a label',
    env: { CLUSTER_ID: 'CLS-ABC' },
    ...NOT_CONFIGURED,
  },
  {
    name: 'no project',
    reason: 'named',
    env: { GCP_PROJECT_ID: '' },
    ...NOT_CONFIGURED,
    says: /GCP_PROJECT_ID/,
  },
  {
    name: 'plain http to elsewhere',
    reason: 'a token never goes in clear',
    env: { SECRET_MANAGER_ENDPOINT: 'http://example.com' },
    ...NOT_CONFIGURED,
  },
  {
    name: 'no cluster to write to',
    reason: 'said before anything is stored',
    env: { MANAGEMENT_NAMESPACE: 'clusters-cls-123', KUBECONFIG: '/nonexistent/kubeconfig' },
    code: 75,
    is: 'ManagementClusterUnavailable',
    versions: 0,
  },
];
