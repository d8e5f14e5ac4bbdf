/** Rotation, revocation, destruction, regional secrets and the challenge: what the Job does at Google beyond storing. */
import assert from 'node:assert/strict';
import type { TestSuite } from '../support/suite.ts';
import type { SecretManagerDouble } from './doubles/secret-manager.ts';
import type { StoredSecret } from './doubles/secret-versions.ts';
import { doubled, OURS } from './job-scenarios.ts';
import { type JobRunner, PATH, pullSecret } from './run-job.ts';

const DAY = 86_400;
const REGIONAL_PATH = PATH.replace('/secrets/', '/locations/europe-west3/secrets/');

function secretOf(double: SecretManagerDouble, path: string = PATH): StoredSecret {
  const secret = double.secrets.get(path);
  assert.ok(secret);
  return secret;
}

function states(double: SecretManagerDouble): string[] {
  return secretOf(double).versions.map((version) => version.state);
}

/** Moves everything in the double back in time by `ms`. */
function earlier(double: SecretManagerDouble, ms: number): void {
  for (const version of secretOf(double).versions)
    version.createTime = new Date(Date.parse(version.createTime ?? '') - ms).toISOString();
}

export function jobRotation(suite: TestSuite, run: JobRunner): void {
  const test = doubled(suite);
  test('two credentials are valid for the time of the policy, and the older one no longer', async (double) => {
    const week = { KEEP_VERSIONS: '5', PREVIOUS_FOR_SECONDS: String(7 * DAY) };
    await run(double, week);
    const rotated = await run(double, { ...week, PULL_SECRET_DATA: pullSecret('next') });
    assert.deepEqual(states(double), ['ENABLED', 'ENABLED']);
    const until = Date.parse(String(rotated.result.details['previousUntil']));
    assert.ok(Math.abs(until - Date.now() - 7 * DAY * 1000) < 600_000, 'a week from now');
    double.calls.length = 0;
    const before = await run(double, { ...week, PULL_SECRET_DATA: pullSecret('next') });
    assert.equal(before.result.details['previousUntil'], rotated.result.details['previousUntil']);
    assert.deepEqual(
      double.calls.map((call) => call.rpc),
      ['GetSecret', 'AccessSecretVersion'],
      'as long as nothing is due, nothing is asked',
    );
    earlier(double, 7 * DAY * 1000);
    secretOf(double).annotations['pullwright-retirement'] =
      `keep-5.for-${7 * DAY}.destroy-0 ${new Date(Date.now() - 3_600_000).toISOString()}`;
    secretOf(double).annotations['pullwright-writer'] = '';
    const after = await run(double, { ...week, PULL_SECRET_DATA: pullSecret('next') });
    assert.deepEqual(
      [after.result.reason, after.result.details['enabledVersions'], after.result.details['previousUntil']],
      ['SecretUnchanged', 1, undefined],
    );
    assert.deepEqual(states(double), ['DISABLED', 'ENABLED']);
  });

  test('no time at all for the older one disables it with the rotation', async (double) => {
    const none = { PREVIOUS_FOR_SECONDS: '0' };
    await run(double, none);
    await run(double, { ...none, PULL_SECRET_DATA: pullSecret('next') });
    assert.deepEqual(states(double), ['DISABLED', 'ENABLED']);
  });

  test('a revocation disables every older version now, once for each request, with and without a rotation', async (double) => {
    const keep = { KEEP_VERSIONS: '5' };
    for (const label of ['one', 'two', 'three'])
      await run(double, { ...keep, PULL_SECRET_DATA: pullSecret(label) });
    const request = { ...keep, REVOKE_PREVIOUS: 'leaked on Monday' };
    const end = await run(double, { ...request, PULL_SECRET_DATA: pullSecret('three') });
    assert.deepEqual([end.code, end.result.details['enabledVersions']], [0, 1], end.result.message);
    assert.deepEqual(states(double), ['DISABLED', 'DISABLED', 'ENABLED']);
    await run(double, { ...request, PULL_SECRET_DATA: pullSecret('four') });
    assert.deepEqual(states(double).slice(2), ['ENABLED', 'ENABLED'], 'that request was answered');
    await run(double, { ...keep, REVOKE_PREVIOUS: 'again', PULL_SECRET_DATA: pullSecret('five') });
    assert.deepEqual(states(double).slice(2), ['DISABLED', 'DISABLED', 'ENABLED']);
  });

  test('a revocation that is not permitted is no success, and is made by the next run', async (double) => {
    await run(double, { PULL_SECRET_DATA: pullSecret('one') });
    await run(double, { PULL_SECRET_DATA: pullSecret('two') });
    double.denied = new Set(['secretmanager.versions.disable']);
    const asked = { PULL_SECRET_DATA: pullSecret('two'), REVOKE_PREVIOUS: 'now' };
    const refused = await run(double, asked);
    assert.deepEqual([refused.code, refused.result.reason], [77, 'IamPermissionDenied']);
    assert.match(refused.result.message, /secretmanager\.versions\.disable/);
    double.denied = new Set();
    assert.equal((await run(double, asked)).code, 0);
    assert.deepEqual(states(double), ['DISABLED', 'ENABLED']);
  });

  test('a revocation that was cut is finished by the next run', async (double) => {
    for (const label of ['one', 'two', 'three'])
      await run(double, { KEEP_VERSIONS: '5', PULL_SECRET_DATA: pullSecret(label) });
    const asked = { KEEP_VERSIONS: '5', PULL_SECRET_DATA: pullSecret('three'), REVOKE_PREVIOUS: 'now' };
    double.faults = [{ rpc: 'DisableSecretVersion', on: [2], hang: true }];
    const cut = await run(double, asked, {
      interruptWhen: () => double.calls.filter(({ rpc }) => rpc === 'DisableSecretVersion').length === 2,
    });
    assert.equal(cut.result.reason, 'Interrupted');
    double.faults = [];
    assert.equal((await run(double, asked)).code, 0);
    assert.deepEqual(states(double), ['DISABLED', 'DISABLED', 'ENABLED']);
  });

  test('what is disabled is destroyed by Google once the time of the policy has passed', async (double) => {
    const policy = { KEEP_VERSIONS: '0', DESTROY_AFTER_SECONDS: String(30 * DAY) };
    const first = { state: 'DISABLED' as const, data: Buffer.from('before there was a policy') };
    double.put(PATH, { labels: { ...OURS }, versions: [first] });
    await run(double, policy);
    await run(double, { ...policy, PULL_SECRET_DATA: pullSecret('next') });
    assert.equal(secretOf(double).versionDestroyTtl, `${30 * DAY}s`);
    assert.deepEqual(states(double), ['DISABLED', 'DISABLED', 'ENABLED']);
    double.passTime(Date.now() + 29 * DAY * 1000);
    assert.deepEqual(states(double), ['DISABLED', 'DISABLED', 'ENABLED'], 'it can still be taken back');
    double.passTime(Date.now() + 31 * DAY * 1000);
    assert.deepEqual(states(double), ['DESTROYED', 'DESTROYED', 'ENABLED']);
  });

  test('without the right to set the delay nothing is destroyed: that could not be undone', async (double) => {
    await run(double);
    double.denied = new Set(['secretmanager.secrets.update']);
    const policy = { KEEP_VERSIONS: '0', DESTROY_AFTER_SECONDS: String(DAY) };
    const end = await run(double, { ...policy, PULL_SECRET_DATA: pullSecret('next') });
    assert.equal(end.result.details['missingPermissions'], 'secretmanager.secrets.update');
    assert.deepEqual(states(double), ['DISABLED', 'ENABLED']);
    assert.equal(secretOf(double).versions[0]?.scheduledDestroyTime, undefined);
  });

  test('another policy is carried out with the next run, also when the content stays', async (double) => {
    for (const label of ['one', 'two']) await run(double, { PULL_SECRET_DATA: pullSecret(label) });
    secretOf(double).annotations['pullwright-writer'] = '';
    await run(double, { KEEP_VERSIONS: '0', PULL_SECRET_DATA: pullSecret('two') });
    assert.deepEqual(states(double), ['DISABLED', 'ENABLED']);
  });

  test('a regional secret is in its location, with its key, and is deleted there', async (double) => {
    const env = {
      SECRET_LOCATION: 'europe-west3',
      KMS_KEY_NAME: 'projects/p/locations/{location}/keyRings/r/cryptoKeys/k',
    };
    const first = await run(double, env);
    assert.deepEqual([first.code, first.result.reason], [0, 'SecretStored'], first.result.message);
    assert.deepEqual([...double.secrets.keys()], [REGIONAL_PATH]);
    const { replication, key } = secretOf(double, REGIONAL_PATH);
    assert.deepEqual(
      [replication, key],
      [undefined, { kmsKeyName: 'projects/p/locations/europe-west3/keyRings/r/cryptoKeys/k' }],
    );
    assert.deepEqual(
      [first.result.details['secretPath'], first.result.details['replicationPolicy']],
      [REGIONAL_PATH, 'regional'],
    );
    assert.ok(
      double.calls.every((call) => call.regional),
      'at the endpoint of the location',
    );
    assert.equal((await run(double, env)).result.reason, 'SecretUnchanged');
    await run(double, { ...env, PULL_SECRET_DATA: pullSecret('next') });
    assert.equal(secretOf(double, REGIONAL_PATH).versions.length, 2);
    const other = await run(double, { ...env, KMS_KEY_NAME: env.KMS_KEY_NAME.replace('/k', '/other') });
    assert.equal(other.result.reason, 'ReplicationMismatch');
    const end = await run(double, { JOB_MODE: 'delete', PLACES: `${REGIONAL_PATH} ${PATH}` });
    assert.deepEqual(end.result.receipt, { [REGIONAL_PATH]: 'removed', [PATH]: 'was not there' });
    assert.equal(double.secrets.size, 0);
  });

  test('a project that does not carry the label of the tenant gets nothing, and Secret Manager is not asked', async (double) => {
    const challenge = 'a'.repeat(32);
    const asked = { TENANT_CHALLENGE: challenge };
    const ends = [];
    for (const labels of [undefined, {}, { 'pullwright-tenant': 'b'.repeat(32) }]) {
      double.projects.clear();
      if (labels !== undefined) double.projects.set('cust-proj', labels);
      ends.push(await run(double, asked));
    }
    assert.deepEqual(
      ends.map(({ code, result }) => [code, result.reason]),
      [
        [77, 'IamPermissionDenied'],
        [77, 'TenancyUnproven'],
        [77, 'TenancyUnproven'],
      ],
    );
    assert.match(ends[1]?.result.message ?? '', new RegExp(`--update-labels=pullwright-tenant=${challenge}`));
    assert.deepEqual([...new Set(double.calls.map(({ rpc }) => rpc))], ['GetProject']);
    double.projects.set('cust-proj', { 'pullwright-tenant': challenge });
    assert.equal((await run(double, asked)).result.reason, 'SecretStored');
    double.projects.set('cust-proj', {});
    const dry = await run(double, asked, { dryRun: true });
    assert.equal(dry.result.reason, 'TenancyUnproven', 'a dry run says it as well');
    const gone = await run(double, { ...asked, JOB_MODE: 'delete' });
    assert.equal(gone.result.reason, 'SecretDeleted', 'what is ours can always be taken back');
  });

  for (const [name, value] of [
    ['DESTROY_AFTER_SECONDS', '3600'],
    ['DESTROY_AFTER_SECONDS', '86400001'],
    ['PREVIOUS_FOR_SECONDS', '-1'],
    ['SECRET_LOCATION', 'x.example.com/'],
    ['SECRET_LOCATION', 'EU'],
    ['REGIONAL_SECRET_MANAGER_ENDPOINT', 'http://{location}.example.com'],
  ] as const)
    test(`${name}=${value} is refused by name`, async (double) => {
      const { code, result } = await run(double, { [name]: value });
      assert.deepEqual([code, result.reason], [78, 'InvalidConfiguration']);
      assert.match(result.message, new RegExp(`^${name} `));
      assert.equal(double.calls.length, 0);
    });
}
