/** What Google can answer, or not. */
import assert from 'node:assert/strict';
import type { Case } from '../support/suite.ts';
import type { Fault, SecretManagerDouble } from './doubles/secret-manager.ts';
import type { StoredSecret } from './doubles/secret-versions.ts';
import { OURS } from './job-scenarios.ts';
import type { JobRun } from './run-job.ts';

export interface Bad extends Case {
  readonly faults?: readonly Fault[];
  readonly env?: Readonly<Record<string, string>>;
  readonly denied?: string;
  readonly present?: () => Partial<StoredSecret>;
  /** SIGTERM as soon as this call was made. */
  readonly interruptAt?: string;
  readonly code: number;
  readonly is: string;
  /** How many versions there are afterwards. */
  readonly versions: number;
  readonly says?: RegExp;
  readonly calls?: number;
  readonly also?: (double: SecretManagerDouble, run: JobRun) => void;
}

const STORED = { code: 0, is: 'SecretStored', versions: 1 } as const;
const LATER = { code: 75, is: 'SecretManagerUnavailable', versions: 0 } as const;
const DENIED = { code: 77, is: 'IamPermissionDenied' } as const;
/** Long enough for a token on a busy machine. */
const SHORT = { GCP_API_TIMEOUT: '3s' };
const OF_OTHERS = (): Partial<StoredSecret> => ({ labels: { ...OURS, 'cluster-id': 'cls-9' } });

function pauseBefore(double: SecretManagerDouble, rpc: string): number {
  const [first, second] = double.calls.filter((call) => call.rpc === rpc);
  return (second?.at ?? 0) - (first?.at ?? 0);
}

export const PERMISSIONS: readonly Bad[] = [
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
      ...DENIED,
      versions,
      says: new RegExp(`grant secretmanager\\.${name.replace('.', '\\.')} in project "cust-proj"`),
    }),
  ),
  {
    name: 'API disabled',
    reason: 'a person must enable it',
    faults: [{ rpc: 'GetSecret', code: 'PERMISSION_DENIED', info: 'SERVICE_DISABLED' }],
    code: 77,
    is: 'ApiDisabled',
    versions: 0,
    calls: 1,
    says: /enable secretmanager\.googleapis\.com in project "cust-proj"/,
  },
];

export const ANSWERS: readonly Bad[] = [
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
    code: 73,
    is: 'SecretNotOwned',
    versions: 0,
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
    code: 0,
    is: 'SecretUnchanged',
    versions: 1,
  },
  {
    name: 'version added, but the connection was cut',
    reason: 'look before adding again',
    faults: [{ rpc: 'AddSecretVersion', reset: true, after: true, on: [1] }],
    code: 0,
    is: 'SecretUnchanged',
    versions: 1,
  },
  {
    name: 'version added, but the answer never came',
    reason: 'look before adding again',
    faults: [{ rpc: 'AddSecretVersion', after: true, hang: true, on: [1] }],
    env: SHORT,
    code: 0,
    is: 'SecretUnchanged',
    versions: 1,
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
    says: /did not end within 8 s/,
  },
  {
    name: 'interrupted while it waits',
    reason: 'SIGTERM ends it with a result',
    faults: [{ rpc: 'AddSecretVersion', hang: true }],
    interruptAt: 'AddSecretVersion',
    code: 75,
    is: 'Interrupted',
    versions: 0,
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
    says: /HTTP 403, and no answer of the API/,
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
    code: 0,
    is: 'SecretUnchanged',
    versions: 1,
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
    code: 75,
    is: 'QuotaExceeded',
    versions: 0,
    calls: 1,
  },
  {
    name: 'quota used up',
    reason: 'later',
    faults: [{ rpc: 'GetSecret', code: 'RESOURCE_EXHAUSTED' }],
    code: 75,
    is: 'QuotaExceeded',
    versions: 0,
    calls: 3,
  },
];
