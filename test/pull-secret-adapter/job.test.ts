/* oxlint-disable max-lines -- one table of faults */
import assert from 'node:assert/strict';
import { findPlanted } from '../support/canary.ts';
import { type Case, suite, table } from '../support/suite.ts';
import { type Fault, SecretManagerDouble, type StoredSecret } from './doubles/secret-manager.ts';
import { PATH, pullSecret, runJobHere } from './run-job.ts';

const test = suite('job');
const OURS = {
  'managed-by': 'hyperfleet',
  adapter: 'pullsecret',
  'cluster-id': 'cls-123',
  'resource-type': 'pull-secret',
  'hyperfleet-version': 'v1',
};

async function withDouble(body: (double: SecretManagerDouble) => Promise<void>): Promise<void> {
  const double = await SecretManagerDouble.start();
  try {
    await body(double);
  } finally {
    await double.close();
  }
}

function rpcs(double: SecretManagerDouble): string[] {
  return double.calls.map((call) => call.rpc);
}

function enabled(secret: StoredSecret | undefined): string[] {
  return (secret?.versions ?? [])
    .filter((version) => version.state === 'ENABLED')
    .map((version) => version.data.toString());
}

test('stores a fresh secret with four calls, and leaves it alone with two', () =>
  withDouble(async (double) => {
    const first = await runJobHere(double);
    assert.deepEqual([first.code, first.result.reason], [0, 'SecretStored']);
    assert.deepEqual(rpcs(double), ['GetSecret', 'CreateSecret', 'AddSecretVersion', 'AccessSecretVersion']);
    assert.deepEqual(double.secrets.get(PATH)?.labels, OURS);
    assert.equal(
      double.calls.at(-1)?.path,
      `/v1/${PATH}/versions/1:access`,
      'read back by the version that was made',
    );
    double.calls.length = 0;
    const second = await runJobHere(double);
    assert.deepEqual([second.code, second.result.reason], [0, 'SecretUnchanged']);
    assert.deepEqual(rpcs(double), ['GetSecret', 'AccessSecretVersion']);
    assert.equal(double.secrets.get(PATH)?.versions.length, 1);
    assert.equal(findPlanted(first.text + second.text), undefined);
  }));

test('rotation adds one version, keeps the one before, disables older ones', () =>
  withDouble(async (double) => {
    for (const label of ['one', 'two', 'three', 'three']) {
      const run = await runJobHere(double, { PULL_SECRET_DATA: pullSecret(label) });
      assert.equal(run.code, 0);
    }
    assert.deepEqual(
      double.secrets.get(PATH)?.versions.map((version) => version.state),
      ['DISABLED', 'ENABLED', 'ENABLED'],
    );
  }));

test('eight runners at once end with one secret and one version', () =>
  withDouble(async (double) => {
    const runs = await Promise.all(Array.from({ length: 8 }, () => runJobHere(double)));
    assert.deepEqual(
      runs.map((run) => run.code),
      Array(8).fill(0),
    );
    assert.equal(double.secrets.get(PATH)?.versions.length, 1);
    const rotations = await Promise.all(
      Array.from({ length: 8 }, () =>
        runJobHere(double, { PULL_SECRET_DATA: pullSecret('next'), CLUSTER_GENERATION: '2' }),
      ),
    );
    assert.deepEqual(
      rotations.map((run) => run.code),
      Array(8).fill(0),
    );
    assert.equal(double.secrets.get(PATH)?.versions.length, 2);
  }));

test('a runner of an older generation gives way', () =>
  withDouble(async (double) => {
    await runJobHere(double, { CLUSTER_GENERATION: '3', PULL_SECRET_DATA: pullSecret('new') });
    const late = await runJobHere(double, { CLUSTER_GENERATION: '2', PULL_SECRET_DATA: pullSecret('old') });
    assert.deepEqual([late.code, late.result.reason], [0, 'SupersededByNewer']);
    assert.deepEqual(enabled(double.secrets.get(PATH)), [pullSecret('new')]);
  }));

test('a disabled latest version is replaced by one that can be read', () =>
  withDouble(async (double) => {
    double.put(PATH, { labels: { ...OURS }, versions: [{ state: 'DISABLED', data: Buffer.from('old') }] });
    assert.equal((await runJobHere(double)).code, 0);
    assert.deepEqual(enabled(double.secrets.get(PATH)), [pullSecret()]);
  }));

test('drifted labels are repaired, foreign ones stay', () =>
  withDouble(async (double) => {
    await runJobHere(double);
    const secret = double.secrets.get(PATH);
    assert.ok(secret);
    secret.labels = { ...OURS, 'hyperfleet-version': 'v0', team: 'a' };
    assert.equal((await runJobHere(double)).result.reason, 'SecretUnchanged');
    assert.deepEqual(secret.labels, { ...OURS, team: 'a' });
  }));

test('customer-managed keys and locations are asked for, and a mismatch is refused', () =>
  withDouble(async (double) => {
    const env = {
      REPLICATION_POLICY: 'user-managed:europe-west1,europe-west4',
      KMS_KEY_NAME: 'projects/p/locations/{location}/keyRings/r/cryptoKeys/k',
    };
    assert.equal((await runJobHere(double, env)).code, 0);
    assert.deepEqual(double.secrets.get(PATH)?.replication, {
      userManaged: {
        replicas: ['europe-west1', 'europe-west4'].map((location) => ({
          location,
          customerManagedEncryption: {
            kmsKeyName: `projects/p/locations/${location}/keyRings/r/cryptoKeys/k`,
          },
        })),
      },
    });
    const other = await runJobHere(double, { REPLICATION_POLICY: 'automatic' });
    assert.deepEqual([other.code, other.result.reason], [73, 'ReplicationMismatch']);
  }));

test('the identity that may write is taken on', () =>
  withDouble(async (double) => {
    const env = { GCP_SERVICE_ACCOUNT: 'pullsecret-manager@cust-proj.iam.gserviceaccount.com' };
    assert.equal((await runJobHere(double, env)).code, 0);
    assert.deepEqual(
      [...new Set(double.impersonated)],
      ['pullsecret-manager@cust-proj.iam.gserviceaccount.com'],
    );
    assert.deepEqual([...new Set(double.calls.map((call) => call.authorization))], ['Bearer ya29.taken-on']);
    double.denyImpersonation = true;
    const denied = await runJobHere(double, env);
    assert.deepEqual([denied.code, denied.result.reason], [77, 'IamPermissionDenied']);
    assert.match(denied.result.message, /serviceAccountTokenCreator/);
  }));

test('deletion removes what is ours, twice without harm, and leaves what is not', () =>
  withDouble(async (double) => {
    await runJobHere(double);
    for (let run = 0; run < 2; run += 1) {
      const end = await runJobHere(double, { JOB_MODE: 'delete', PULL_SECRET_DATA: '' });
      assert.deepEqual([end.code, end.result.reason], [0, 'SecretDeleted']);
      assert.equal(double.secrets.size, 0);
    }
    double.put(PATH, { labels: { team: 'a' } });
    assert.equal((await runJobHere(double, { JOB_MODE: 'delete' })).code, 0);
    assert.equal(double.secrets.size, 1);
  }));

test('a dry run authenticates, asks for permissions, and writes nothing', () =>
  withDouble(async (double) => {
    const dry = await runJobHere(double, {}, { dryRun: true });
    assert.deepEqual([dry.code, dry.result.details['plan']], [0, 'create']);
    assert.equal(double.secrets.size, 0);
    double.metadata = 'down';
    const down = await runJobHere(double, {}, { dryRun: true });
    assert.deepEqual([down.code, down.result.reason], [69, 'IdentityUnavailable']);
  }));

interface Bad extends Case {
  readonly faults?: readonly Fault[];
  readonly env?: Readonly<Record<string, string>>;
  readonly present?: Partial<StoredSecret>;
  readonly code: number;
  readonly is: string;
  readonly versions: number;
}

const BAD: readonly Bad[] = [
  {
    name: 'permission denied',
    reason: 'a person must grant it',
    faults: [{ rpc: 'GetSecret', code: 'PERMISSION_DENIED' }],
    code: 77,
    is: 'IamPermissionDenied',
    versions: 0,
  },
  {
    name: 'API disabled',
    reason: 'a person must enable it',
    faults: [{ rpc: 'GetSecret', code: 'PERMISSION_DENIED', info: 'SERVICE_DISABLED' }],
    code: 77,
    is: 'ApiDisabled',
    versions: 0,
  },
  {
    name: 'lost race',
    reason: 'the secret is there, which is what was wanted',
    faults: [{ rpc: 'CreateSecret', code: 'ALREADY_EXISTS', after: true, on: [1] }],
    env: {},
    code: 0,
    is: 'SecretStored',
    versions: 1,
  },
  {
    name: 'committed, but answered UNAVAILABLE',
    reason: 'look before adding again',
    faults: [{ rpc: 'AddSecretVersion', code: 'UNAVAILABLE', after: true, on: [1] }],
    code: 0,
    is: 'SecretUnchanged',
    versions: 1,
  },
  {
    name: 'committed, but the connection was cut',
    reason: 'look before adding again',
    faults: [{ rpc: 'AddSecretVersion', reset: true, after: true, on: [1] }],
    code: 0,
    is: 'SecretUnchanged',
    versions: 1,
  },
  {
    name: 'a page of a proxy',
    reason: 'no JSON is no answer',
    faults: [{ rpc: 'GetSecret', html: true, on: [1] }],
    code: 0,
    is: 'SecretStored',
    versions: 1,
  },
  {
    name: 'aborted once',
    reason: 'Google documents it as "retry"',
    faults: [{ rpc: 'AddSecretVersion', code: 'ABORTED', on: [1] }],
    code: 0,
    is: 'SecretStored',
    versions: 1,
  },
  {
    name: 'read back differently',
    reason: 'never report what is not stored',
    faults: [{ rpc: 'AccessSecretVersion', corrupt: true }],
    code: 76,
    is: 'PayloadCorrupted',
    versions: 1,
  },
  {
    name: 'quota used up',
    reason: 'later',
    faults: [{ rpc: 'GetSecret', code: 'RESOURCE_EXHAUSTED' }],
    code: 75,
    is: 'QuotaExceeded',
    versions: 0,
  },
  {
    name: 'owned by another cluster',
    reason: 'never overwritten',
    present: { labels: { ...OURS, 'cluster-id': 'cls-9' } },
    code: 73,
    is: 'SecretNotOwned',
    versions: 0,
  },
  { name: 'without labels', reason: 'not ours', present: {}, code: 73, is: 'SecretNotOwned', versions: 0 },
  {
    name: 'without labels, adopted',
    reason: 'said so',
    present: {},
    env: { ADOPT: 'true' },
    code: 0,
    is: 'SecretStored',
    versions: 1,
  },
  {
    name: 'too large',
    reason: 'refused before any call',
    env: { PULL_SECRET_DATA: JSON.stringify({ auths: { a: { auth: 'x'.repeat(66_000) } } }) },
    code: 65,
    is: 'InvalidPullSecret',
    versions: 0,
  },
  {
    name: 'bad entry',
    reason: 'refused before any call',
    env: { PULL_SECRET_DATA: '{"auths":{"quay.io":{}}}' },
    code: 65,
    is: 'InvalidPullSecret',
    versions: 0,
  },
  {
    name: 'upper-case cluster',
    reason: 'does not fit a label',
    env: { CLUSTER_ID: 'CLS-ABC' },
    code: 78,
    is: 'InvalidConfiguration',
    versions: 0,
  },
  {
    name: 'no project',
    reason: 'named',
    env: { GCP_PROJECT_ID: '' },
    code: 78,
    is: 'InvalidConfiguration',
    versions: 0,
  },
  {
    name: 'plain http to elsewhere',
    reason: 'a token never goes in clear',
    env: { SECRET_MANAGER_ENDPOINT: 'http://example.com' },
    code: 78,
    is: 'InvalidConfiguration',
    versions: 0,
  },
];

table(test, BAD, (row) =>
  withDouble(async (double) => {
    if (row.present !== undefined) double.put(PATH, row.present);
    double.faults = row.faults ?? [];
    const run = await runJobHere(double, row.env);
    assert.deepEqual([run.code, run.result.reason], [row.code, row.is], run.result.message);
    assert.equal(double.secrets.get(PATH)?.versions.length ?? 0, row.versions);
    assert.equal(findPlanted(run.text), undefined);
  }),
);

test.run();
