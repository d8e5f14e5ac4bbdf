/** Job runs without faults, and after an interrupted run. Runs from source and compiled. */
import assert from 'node:assert/strict';
import { plantedAuth } from '../support/canary.ts';
import type { TestSuite } from '../support/suite.ts';
import { SecretManagerDouble } from './doubles/secret-manager.ts';
import type { StoredSecret } from './doubles/secret-versions.ts';
import { type JobRunner, PATH, pullSecret } from './run-job.ts';

export const OURS: Readonly<Record<string, string>> = {
  'managed-by': 'hyperfleet',
  adapter: 'pullsecret',
  'cluster-id': 'cls-123',
  'resource-type': 'pull-secret',
  'hyperfleet-version': 'v1',
};

export async function withDouble(body: (double: SecretManagerDouble) => Promise<void>): Promise<void> {
  const double = await SecretManagerDouble.start();
  try {
    await body(double);
  } finally {
    await double.close();
  }
}

/** Adds tests that have a double each. */
export function doubled(
  test: TestSuite,
): (name: string, body: (double: SecretManagerDouble) => Promise<void>) => void {
  return (name, body) => test(name, () => withDouble(body));
}

function rpcs(double: SecretManagerDouble): string[] {
  return double.calls.map((call) => call.rpc);
}

function enabled(secret: StoredSecret | undefined): string[] {
  return (secret?.versions ?? [])
    .filter((version) => version.state === 'ENABLED')
    .map((version) => version.data.toString());
}

export function jobScenarios(suite: TestSuite, run: JobRunner): void {
  const test = doubled(suite);
  test('the trace of who asked stands in every line and in the result; what is none does not', async (double) => {
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const { lines, result } = await run(double, { TRACEPARENT: traceparent });
    assert.equal(result.details['traceparent'], traceparent);
    assert.ok(lines.length > 0 && lines.every((line) => line['traceparent'] === traceparent));
    const wrong = await run(double, { TRACEPARENT: 'x\n' });
    assert.equal(wrong.result.details['traceparent'], undefined);
  });

  test('stores a fresh secret with four calls, and leaves it alone with two', async (double) => {
    const first = await run(double);
    assert.deepEqual([first.code, first.result.reason], [0, 'SecretStored'], first.result.message);
    assert.deepEqual(rpcs(double), ['GetSecret', 'CreateSecret', 'AddSecretVersion', 'AccessSecretVersion']);
    assert.deepEqual(double.secrets.get(PATH)?.labels, OURS);
    assert.equal(
      double.calls.at(-1)?.path,
      `/v1/${PATH}/versions/1:access`,
      'read back by the version that was made',
    );
    assert.deepEqual(
      [first.result.details['secretVersion'], first.result.details['enabledVersions']],
      ['1', 1],
    );
    double.calls.length = 0;
    const second = await run(double);
    assert.deepEqual([second.code, second.result.reason], [0, 'SecretUnchanged']);
    assert.deepEqual(rpcs(double), ['GetSecret', 'AccessSecretVersion']);
    assert.equal(double.secrets.get(PATH)?.versions.length, 1);
    const age = Date.now() - Date.parse(String(second.result.details['versionCreatedTime']));
    assert.ok(age >= 0 && age < 600_000, 'the age of the version is known without a third call');
  });

  test('rotation adds one version, keeps the one before, disables older ones, and counts', async (double) => {
    const counts = [];
    for (const label of ['one', 'two', 'three', 'three']) {
      const { code, result } = await run(double, { PULL_SECRET_DATA: pullSecret(label) });
      assert.equal(code, 0, result.message);
      counts.push(result.details['enabledVersions']);
    }
    const states = double.secrets.get(PATH)?.versions.map((version) => version.state);
    assert.deepEqual(states, ['DISABLED', 'ENABLED', 'ENABLED']);
    assert.deepEqual(counts, [1, 2, 2, 2]);
  });

  test('how many older versions stay is a policy, and what has an alias stays', async (double) => {
    const versions = ['a', 'b', 'c', 'd'].map((text) => ({
      state: 'ENABLED' as const,
      data: Buffer.from(text),
    }));
    double.put(PATH, { labels: { ...OURS }, versions, versionAliases: { pinned: '1' } });
    assert.equal((await run(double, { KEEP_VERSIONS: '0' })).result.details['enabledVersions'], 2);
    assert.deepEqual(enabled(double.secrets.get(PATH)), ['a', pullSecret()]);
  });

  test('the same content many times over is left once', async (double) => {
    const versions = Array.from({ length: 250 }, () => ({
      state: 'ENABLED' as const,
      data: Buffer.from(pullSecret()),
    }));
    double.put(PATH, {
      labels: { ...OURS },
      versions: [...versions, { state: 'DISABLED', data: Buffer.from('x') }],
    });
    assert.equal((await run(double)).code, 0);
    assert.deepEqual(enabled(double.secrets.get(PATH)), [pullSecret()]);
  });

  test('eight runners at once end with one secret and one version, and so does their rotation', async (double) => {
    for (const [env, versions] of [
      [{ CLUSTER_GENERATION: '1' }, 1],
      [{ CLUSTER_GENERATION: '2', PULL_SECRET_DATA: pullSecret('next') }, 2],
    ] as const) {
      const runs = await Promise.all(Array.from({ length: 8 }, () => run(double, env)));
      assert.deepEqual(
        runs.map((one) => one.code),
        Array(8).fill(0),
      );
      assert.equal(double.secrets.get(PATH)?.versions.length, versions);
    }
  });

  test('a runner of an older generation gives way, and says that it did', async (double) => {
    await run(double, { CLUSTER_GENERATION: '3', PULL_SECRET_DATA: pullSecret('new') });
    const late = await run(double, { CLUSTER_GENERATION: '2', PULL_SECRET_DATA: pullSecret('old') });
    assert.deepEqual([late.code, late.result.reason], [75, 'SupersededByNewer']);
    assert.match(late.result.message, /newer generation/);
    const same = await run(double, { CLUSTER_GENERATION: '2', PULL_SECRET_DATA: pullSecret('new') });
    assert.deepEqual([same.code, same.result.reason], [0, 'SecretUnchanged'], 'the content decides');
    assert.deepEqual(enabled(double.secrets.get(PATH)), [pullSecret('new')]);
  });

  for (const state of ['DISABLED', 'DESTROYED'] as const) {
    test(`a ${state.toLowerCase()} latest version is followed by one that can be read`, async (double) => {
      const versions = [
        { state: 'ENABLED' as const, data: Buffer.from(pullSecret()) },
        { state, data: Buffer.from('old') },
      ];
      double.put(PATH, { labels: { ...OURS }, versions });
      assert.deepEqual((await run(double)).result.reason, 'SecretStored');
      assert.equal(double.secrets.get(PATH)?.versions.at(-1)?.state, 'ENABLED');
    });
  }

  test('drifted labels are repaired by mask; foreign labels and annotations stay', async (double) => {
    await run(double);
    const secret = double.secrets.get(PATH);
    assert.ok(secret);
    secret.labels = { ...OURS, 'hyperfleet-version': 'v0', team: 'a' };
    secret.annotations['team'] = 'b';
    assert.equal((await run(double)).result.reason, 'SecretUnchanged');
    assert.deepEqual(secret.labels, { ...OURS, team: 'a' });
    assert.equal(secret.annotations['team'], 'b');
    const update = double.calls.find((call) => call.rpc === 'UpdateSecret');
    assert.equal(update?.path.split('updateMask=')[1], 'labels');
  });

  test('customer-managed keys and locations are asked for, and a mismatch is refused', async (double) => {
    const env = {
      REPLICATION_POLICY: 'user-managed:europe-west1,europe-west4',
      KMS_KEY_NAME: 'projects/p/locations/{location}/keyRings/r/cryptoKeys/k',
    };
    const first = await run(double, env);
    assert.deepEqual([first.code, first.result.details['replicationPolicy']], [0, 'user-managed']);
    const key = (location: string): string => `projects/p/locations/${location}/keyRings/r/cryptoKeys/k`;
    assert.deepEqual(double.secrets.get(PATH)?.replication, {
      userManaged: {
        replicas: ['europe-west1', 'europe-west4'].map((location) => ({
          location,
          customerManagedEncryption: { kmsKeyName: key(location) },
        })),
      },
    });
    const again = await run(double, {
      ...env,
      REPLICATION_POLICY: 'user-managed:europe-west4,europe-west1',
    });
    assert.equal(again.result.reason, 'SecretUnchanged', 'the order of locations says nothing');
    const other = await run(double, { REPLICATION_POLICY: 'automatic' });
    assert.deepEqual([other.code, other.result.reason], [73, 'ReplicationMismatch']);
    assert.equal((await run(double)).code, 0, 'no wish, no mismatch');
  });

  test('quotes, newlines, other scripts and 64 KiB are stored byte for byte', async (double) => {
    const auth = plantedAuth('bytes');
    const spaced = `\n{\r\n\t"auths": {"quay.io": {"auth": "${auth}", "email": "a\\"b\\n'c' \\u00e9 \u{1F511} $HOME \`x\`"}}}\n\n`;
    const filled = `{"auths":{"quay.io":{"auth":"${auth}","email":""}}}`;
    const largest = filled.replace('"email":""', `"email":"${'x'.repeat(65_536 - filled.length)}"`);
    for (const text of [spaced, largest]) {
      const { code, result } = await run(double, { PULL_SECRET_DATA: text });
      assert.deepEqual([code, result.details['bytes']], [0, Buffer.byteLength(text)], result.message);
      assert.equal(double.secrets.get(PATH)?.versions.at(-1)?.data.toString(), text);
    }
  });

  test('deletion removes what is ours, twice without harm, and leaves what is not', async (double) => {
    await run(double);
    for (let round = 0; round < 2; round += 1) {
      const end = await run(double, { JOB_MODE: 'delete', PULL_SECRET_DATA: '' });
      assert.deepEqual([end.code, end.result.reason], [0, 'SecretDeleted']);
      assert.equal(double.secrets.size, 0);
    }
    await run(double);
    assert.equal((await run(double, { JOB_MODE: 'delete', ON_DELETION: 'retain' })).code, 0);
    assert.equal(double.secrets.size, 1, 'retained');
    double.put(PATH, { labels: { team: 'a' } });
    assert.equal((await run(double, { JOB_MODE: 'delete' })).code, 0);
    assert.equal(double.secrets.size, 1);
  });

  test('what an interrupted run left of older versions is done by the next', async (double) => {
    for (const label of ['one', 'two']) await run(double, { PULL_SECRET_DATA: pullSecret(label) });
    double.faults = [{ rpc: 'ListSecretVersions', hang: true }];
    const cut = await run(
      double,
      { PULL_SECRET_DATA: pullSecret('three') },
      { interruptWhen: () => double.calls.at(-1)?.rpc === 'ListSecretVersions' },
    );
    assert.deepEqual([cut.code, cut.result.reason], [75, 'Interrupted']);
    double.faults = [];
    const states = (): unknown => double.secrets.get(PATH)?.versions.map((version) => version.state);
    assert.deepEqual(states(), ['ENABLED', 'ENABLED', 'ENABLED']);
    // Another process: the hold of the one that was cut has to be old before anybody takes over its work.
    const secret = double.secrets.get(PATH);
    assert.ok(secret);
    secret.annotations['pullwright-writer'] =
      secret.annotations['pullwright-writer']?.replace(/\d+$/, '1') ?? '';
    const next = await run(double, { PULL_SECRET_DATA: pullSecret('three') });
    assert.deepEqual([next.result.reason, next.result.details['enabledVersions']], ['SecretUnchanged', 2]);
    assert.deepEqual(states(), ['DISABLED', 'ENABLED', 'ENABLED']);
  });

  test('the four permissions of the existing job suffice; what is left out is named', async (double) => {
    double.denied = new Set(
      ['secrets.update', 'versions.list', 'versions.disable', 'versions.destroy'].map(
        (name) => `secretmanager.${name}`,
      ),
    );
    await run(double);
    const { code, result } = await run(double, { PULL_SECRET_DATA: pullSecret('next') });
    assert.equal(code, 0, result.message);
    assert.equal(
      result.details['missingPermissions'],
      'secretmanager.secrets.update, secretmanager.versions.list',
    );
    assert.deepEqual(enabled(double.secrets.get(PATH)), [pullSecret(), pullSecret('next')]);
  });
}
