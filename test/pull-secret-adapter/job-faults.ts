/** Everything that can go wrong between the Job and Google, with exit code and reason. Run here and compiled. */
import assert from 'node:assert/strict';
import { plantedAuth } from '../support/canary.ts';
import { type Case, type TestSuite, table } from '../support/suite.ts';
import type { Fault, SecretManagerDouble } from './doubles/secret-manager.ts';
import type { StoredSecret } from './doubles/secret-versions.ts';
import { OURS, withDouble } from './job-scenarios.ts';
import { type JobRun, type JobRunner, PATH } from './run-job.ts';

// Faults of Google's answers.

interface Bad extends Case {
  readonly faults?: readonly Fault[];
  readonly env?: Readonly<Record<string, string>>;
  readonly denied?: string;
  readonly present?: () => Partial<StoredSecret>;
  /** SIGTERM as soon as this call was made. */
  readonly interruptAt?: string;
  /** Exit code, reason, and how many versions there are afterwards. */
  readonly ends: readonly [code: number, reason: string, versions: number];
  readonly says?: RegExp;
  readonly calls?: number;
  readonly also?: (double: SecretManagerDouble, run: JobRun) => void;
}

const STORED = { ends: [0, 'SecretStored', 1] } as const;
const LATER = { ends: [75, 'SecretManagerUnavailable', 0] } as const;
/** Long enough for a token on a busy machine. */
const SHORT = { GCP_API_TIMEOUT: '3s' };
const OF_OTHERS = (): Partial<StoredSecret> => ({ labels: { ...OURS, 'cluster-id': 'cls-9' } });

function pauseBefore(double: SecretManagerDouble, rpc: string): number {
  const [first, second] = double.calls.filter((call) => call.rpc === rpc);
  return (second?.at ?? 0) - (first?.at ?? 0);
}

const PERMISSIONS: readonly Bad[] = [
  ...(
    [
      ['secrets.get', 0],
      ['secrets.create', 0],
      ['versions.add', 0],
      ['versions.access', 1],
    ] as const
  ).map(
    ([name, versions]): Bad => ({
      name: `no ${name}`,
      reason: 'the message names the permission',
      denied: `secretmanager.${name}`,
      ends: [77, 'IamPermissionDenied', versions],
      says: new RegExp(`grant secretmanager\\.${name.replace('.', '\\.')} in project "cust-proj"`),
    }),
  ),
  {
    name: 'API disabled',
    reason: 'a person must enable it',
    faults: [{ rpc: 'GetSecret', code: 'PERMISSION_DENIED', info: 'SERVICE_DISABLED' }],
    ends: [77, 'ApiDisabled', 0],
    calls: 1,
    says: /enable secretmanager\.googleapis\.com in project "cust-proj"/,
  },
];

const ANSWERS: readonly Bad[] = [
  {
    name: 'lost race',
    reason: 'the secret is there, which is what was wanted',
    faults: [{ rpc: 'CreateSecret', code: 'ALREADY_EXISTS', after: true, on: [1] }],
    ...STORED,
  },
  {
    name: 'lost race against another owner',
    reason: 'looked at before anything is added',
    faults: [{ rpc: 'GetSecret', code: 'NOT_FOUND', on: [1] }],
    present: OF_OTHERS,
    ends: [73, 'SecretNotOwned', 0],
  },
  {
    name: 'secret made, but answered UNAVAILABLE',
    reason: "completed, not refused as somebody else's",
    faults: [{ rpc: 'CreateSecret', code: 'UNAVAILABLE', after: true, on: [1] }],
    ...STORED,
  },
  {
    name: 'version added, but answered UNAVAILABLE',
    reason: 'look before adding again',
    faults: [{ rpc: 'AddSecretVersion', code: 'UNAVAILABLE', after: true, on: [1] }],
    ends: [0, 'SecretUnchanged', 1],
  },
  {
    name: 'version added, but the connection was cut',
    reason: 'look before adding again',
    faults: [{ rpc: 'AddSecretVersion', reset: true, after: true, on: [1] }],
    ends: [0, 'SecretUnchanged', 1],
  },
  {
    name: 'version added, but the answer never came',
    reason: 'look before adding again',
    faults: [{ rpc: 'AddSecretVersion', after: true, hang: true, on: [1] }],
    env: SHORT,
    ends: [0, 'SecretUnchanged', 1],
  },
  {
    name: 'the connection is cut once',
    reason: 'again',
    faults: [{ rpc: 'GetSecret', reset: true, on: [1] }],
    ...STORED,
  },
  {
    name: 'no connection',
    reason: 'later',
    env: { SECRET_MANAGER_ENDPOINT: 'http://127.0.0.1:1' },
    ...LATER,
  },
  { name: 'slow', reason: 'waited for', faults: [{ rpc: 'GetSecret', delayMs: 700 }], ...STORED },
  {
    name: 'no answer once',
    reason: 'again',
    faults: [{ rpc: 'GetSecret', hang: true, on: [1] }],
    env: SHORT,
    ...STORED,
  },
  {
    name: 'never an answer',
    reason: 'later',
    faults: [{ rpc: 'GetSecret', hang: true }],
    env: SHORT,
    ...LATER,
    calls: 3,
    says: /GetSecret: DEADLINE_EXCEEDED/,
  },
  {
    name: 'the whole run takes too long',
    reason: 'it ends by itself before the Job does, or its reason would be lost with the pod',
    faults: [{ rpc: 'GetSecret', hang: true }],
    env: { RUN_TIMEOUT: '8s' },
    ...LATER,
    calls: 1,
    says: /did not finish within 8 s/,
  },
  {
    name: 'interrupted while it waits',
    reason: 'SIGTERM ends it with a result',
    faults: [{ rpc: 'AddSecretVersion', hang: true }],
    interruptAt: 'AddSecretVersion',
    ends: [75, 'Interrupted', 0],
  },
  {
    name: 'a page of a proxy with 200',
    reason: 'no JSON is no answer',
    faults: [{ rpc: 'GetSecret', html: true, on: [1] }],
    ...STORED,
  },
  {
    name: 'a page of a proxy with 403, always',
    reason: 'a proxy that refuses is no missing permission',
    faults: [{ rpc: 'GetSecret', html: 403 }],
    ...LATER,
    says: /HTTP 403, not a response of the API/,
  },
  {
    name: 'a page of a proxy with 404',
    reason: 'does not mean that there is no secret',
    faults: [{ rpc: 'GetSecret', html: 404 }],
    ...LATER,
    also: (double) => assert.equal(double.secrets.size, 0),
  },
  {
    name: 'aborted once',
    reason: 'Google documents it as "retry"',
    faults: [{ rpc: 'AddSecretVersion', code: 'ABORTED', on: [1] }],
    ...STORED,
  },
  {
    name: 'internal error once',
    reason: 'again',
    faults: [{ rpc: 'AccessSecretVersion', code: 'INTERNAL', on: [1] }],
    ends: [0, 'SecretUnchanged', 1],
  },
  {
    name: 'quota used up, for two seconds',
    reason: 'Retry-After is waited for',
    faults: [{ rpc: 'GetSecret', code: 'RESOURCE_EXHAUSTED', retryAfter: 2, on: [1] }],
    ...STORED,
    also: (double, run) =>
      assert.ok(Math.max(pauseBefore(double, 'GetSecret'), ...run.pauses) >= 1950, 'waited as long as asked'),
  },
  {
    name: 'quota used up, for ten minutes',
    reason: 'no pod waits that long',
    faults: [{ rpc: 'GetSecret', code: 'RESOURCE_EXHAUSTED', retryAfter: 600 }],
    ends: [75, 'QuotaExceeded', 0],
    calls: 1,
  },
  {
    name: 'quota used up',
    reason: 'later',
    faults: [{ rpc: 'GetSecret', code: 'RESOURCE_EXHAUSTED' }],
    ends: [75, 'QuotaExceeded', 0],
    calls: 3,
  },
];

// Faults of the stored secret and of the requested one.

const CORRUPT = { ends: [76, 'PayloadCorrupted', 1] } as const;
const NOT_CONFIGURED = { ends: [78, 'InvalidConfiguration', 0], calls: 0 } as const;
const NO_SECRET = { ends: [65, 'InvalidPullSecret', 0], calls: 0 } as const;
const TOO_LARGE = JSON.stringify({
  auths: { 'quay.io': { auth: plantedAuth('large'), email: 'x'.repeat(66_000) } },
});

const CONTENT: readonly Bad[] = [
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
    ends: [73, 'SecretNotOwned', 0],
    calls: 1,
  },
  {
    name: 'owned by another cluster, adopted',
    reason: 'adoption is for what names no owner',
    present: OF_OTHERS,
    env: { ADOPT: 'true' },
    ends: [73, 'SecretNotOwned', 0],
  },
  { name: 'without labels', reason: 'not ours', present: () => ({}), ends: [73, 'SecretNotOwned', 0] },
  {
    name: 'without labels, adopted',
    reason: 'said so',
    present: () => ({}),
    env: { ADOPT: 'true' },
    ...STORED,
  },
];

const INPUT: readonly Bad[] = [
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
    ends: [75, 'ManagementClusterUnavailable', 0],
  },
];

export function jobFaults(test: TestSuite, run: JobRunner): void {
  table(test, [...PERMISSIONS, ...ANSWERS, ...CONTENT, ...INPUT], (row) =>
    withDouble(async (double) => {
      if (row.present !== undefined) double.put(PATH, row.present());
      if (row.denied !== undefined) double.denied = new Set([row.denied]);
      double.faults = row.faults ?? [];
      const { interruptAt } = row;
      const cut =
        interruptAt === undefined ? {} : { interruptWhen: () => double.calls.at(-1)?.rpc === interruptAt };
      const ended = await run(double, row.env, cut);
      const versions = double.secrets.get(PATH)?.versions.length ?? 0;
      assert.deepEqual([ended.code, ended.result.reason, versions], row.ends, ended.result.message);
      if (row.says !== undefined) assert.match(ended.result.message, row.says);
      if (row.calls !== undefined) assert.equal(double.calls.length, row.calls);
      row.also?.(double, ended);
    }),
  );
}
