// deadline: 400 s
/**
 * The double of Secret Manager under Google's own client, over REST: requests, answers, refusals and paging are read by code that is not
 * ours. Its token is one that Google's auth library got from the double of the metadata server.
 */
import assert from 'node:assert/strict';
import { test as suite } from '../support/suite.ts';
import { SecretManagerDouble } from './doubles/secret-manager.ts';
import { type OfficialClient, officialClient, type Reply } from './official-client.ts';

const PARENT = 'projects/p';
const SECRET: string = `${PARENT}/secrets/s`;

/** Google's client and the double that answers it. */
interface ClientScene {
  readonly double: SecretManagerDouble;
  readonly client: OfficialClient;
}

/** Error of the client for a rejected call; `code` is the number of the canonical code. */
interface Refused extends Error {
  readonly code: number;
  readonly reason?: string;
  readonly domain?: string;
  readonly errorInfoMetadata?: Readonly<Record<string, string>>;
}

const Client = await officialClient();

/** Why there is no client on this machine, for `test.skip`. */
const missingClient: string | undefined = typeof Client === 'string' ? Client : undefined;

/**
 * Runs the body with a fresh double, and closes both ends whatever happens.
 *
 * @param apiEndpoint `localhost` is the endpoint of a location
 */
async function withClient(
  body: (scene: ClientScene) => Promise<void>,
  apiEndpoint: '127.0.0.1' | 'localhost' = '127.0.0.1',
): Promise<void> {
  if (typeof Client === 'string') throw new Error(Client);
  const double = await SecretManagerDouble.start();
  process.env['GCE_METADATA_HOST'] = double.host;
  process.env['METADATA_SERVER_DETECTION'] = 'assume-present';
  const client = new Client({
    fallback: true,
    protocol: 'http',
    apiEndpoint,
    port: double.port,
    projectId: 'p',
  });
  try {
    await body({ double, client });
  } finally {
    await client.close();
    await double.close();
  }
}

/** The secret `s`, with a version for each payload. */
async function makeSecret({ client }: ClientScene, payloads: readonly string[] = []): Promise<void> {
  const secret = { replication: { automatic: {} }, labels: { 'managed-by': 'hyperfleet' } };
  await client.createSecret({ parent: PARENT, secretId: 's', secret });
  for (const data of payloads)
    await client.addSecretVersion({ parent: SECRET, payload: { data: Buffer.from(data) } });
}

/** The error of a call that must be refused. */
async function refusal(call: Promise<unknown>): Promise<Refused> {
  const ended = await Promise.allSettled([call]);
  if (ended[0].status === 'fulfilled') throw new Error('was not refused');
  return ended[0].reason as Refused;
}

function payloadOf(reply: Reply): { readonly data: Uint8Array; readonly dataCrc32c: unknown } {
  return reply['payload'] as { data: Uint8Array; dataCrc32c: unknown };
}

/** The largest payload. */
const LIMIT = 65_536;
const REGION: string = `${PARENT}/locations/europe-west3`;
const KEY = `${REGION}/keyRings/r/cryptoKeys/k`;

/** Without the fields that the client adds as empty. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, one: unknown) =>
      one === null || key === 'automatic_' || key === 'replication' ? undefined : one,
    ),
  );
}

/** Adds a test with a double of its own. */
function test(name: string, body: (scene: ClientScene) => Promise<void>): void {
  suite(name, () => withClient(body));
}

if (missingClient !== undefined) suite.skip('everything', missingClient);
else {
  test('a secret comes back as it was made: number of the project, labels, replication, quoted etag, time', async (scene) => {
    await makeSecret(scene);
    const [secret] = await scene.client.getSecret({ name: SECRET });
    assert.equal(secret['name'], 'projects/123456/secrets/s');
    assert.deepEqual(secret['labels'], { 'managed-by': 'hyperfleet' });
    assert.equal(secret['etag'], '"1"');
    assert.ok('automatic' in (secret['replication'] as object));
    const { seconds } = secret['createTime'] as { seconds: string | number };
    assert.ok(Math.abs(Number(seconds) - Date.now() / 1000) < 600);
    assert.deepEqual([...new Set(scene.double.calls.map((call) => call.identity))], ['metadata']);
  });

  test('CRC32C goes both ways as int64, and a wrong one is refused', async (scene) => {
    await makeSecret(scene);
    const data = Buffer.from('123456789');
    const [added] = await scene.client.addSecretVersion({
      parent: SECRET,
      payload: { data, dataCrc32c: 0xe3069283 },
    });
    assert.equal(added['clientSpecifiedPayloadChecksum'], true);
    const [read] = await scene.client.accessSecretVersion({ name: `${SECRET}/versions/1` });
    assert.equal(Buffer.from(payloadOf(read).data).toString(), '123456789');
    assert.equal(Number(payloadOf(read).dataCrc32c), 3_808_858_755);
    const wrong = await refusal(
      scene.client.addSecretVersion({ parent: SECRET, payload: { data, dataCrc32c: 1 } }),
    );
    assert.equal(wrong.code, 3, wrong.message);
  });

  test('"latest" is the version made last, also when it is disabled or destroyed', async (scene) => {
    const { client } = scene;
    await makeSecret(scene, ['one', 'two']);
    const latest = { name: `${SECRET}/versions/latest` };
    const [read] = await client.accessSecretVersion(latest);
    assert.deepEqual(
      [read['name'], Buffer.from(payloadOf(read).data).toString()],
      ['projects/123456/secrets/s/versions/2', 'two'],
    );
    const [disabled] = await client.disableSecretVersion({ name: `${SECRET}/versions/2` });
    assert.equal(disabled['state'], 'DISABLED');
    const refused = await refusal(client.accessSecretVersion(latest));
    assert.deepEqual([refused.code, /is in DISABLED state/.test(refused.message)], [9, true]);
    const [destroyed] = await client.destroySecretVersion({ name: `${SECRET}/versions/2` });
    assert.deepEqual([destroyed['state'], destroyed['destroyTime'] === null], ['DESTROYED', false]);
    assert.equal((await refusal(client.accessSecretVersion(latest))).code, 9);
  });

  test('a mask changes what it names, an etag guards it, and every update makes a new one', async (scene) => {
    const { client } = scene;
    await makeSecret(scene);
    const first = { name: SECRET, labels: { other: 'x' }, annotations: { a: 'b' }, etag: '"1"' };
    const [changed] = await client.updateSecret({ secret: first, updateMask: { paths: ['annotations'] } });
    assert.deepEqual(
      [changed['labels'], changed['annotations'], changed['etag']],
      [{ 'managed-by': 'hyperfleet' }, { a: 'b' }, '"2"'],
    );
    const late = await refusal(client.updateSecret({ secret: first, updateMask: { paths: ['labels'] } }));
    assert.equal(late.code, 9);
    assert.equal((await refusal(client.deleteSecret({ name: SECRET, etag: '"1"' }))).code, 9);
    await client.deleteSecret({ name: SECRET, etag: '"2"' });
    assert.equal((await refusal(client.getSecret({ name: SECRET }))).code, 5);
  });

  test('versions are listed newest first, by pages, and by state', async (scene) => {
    await makeSecret(scene, ['1', '2', '3', '4', '5']);
    await scene.client.disableSecretVersion({ name: `${SECRET}/versions/4` });
    const [all] = await scene.client.listSecretVersions({ parent: SECRET, pageSize: 2 });
    assert.deepEqual(
      all.map((version) => [String(version['name']).split('/').at(-1), version['state']]),
      [
        ['5', 'ENABLED'],
        ['4', 'DISABLED'],
        ['3', 'ENABLED'],
        ['2', 'ENABLED'],
        ['1', 'ENABLED'],
      ],
    );
    assert.equal(
      scene.double.calls.filter((call) => call.rpc === 'ListSecretVersions').length,
      3,
      'pages of two',
    );
    const [enabled] = await scene.client.listSecretVersions({ parent: SECRET, filter: 'state:ENABLED' });
    assert.equal(enabled.length, 4);
  });

  test('a delayed destruction disables first, and is done when its time has come', async (scene) => {
    const { client, double } = scene;
    await makeSecret(scene, ['one', 'two']);
    const seconds = 2 * 86_400;
    const secret = { name: SECRET, versionDestroyTtl: { seconds } };
    const [changed] = await client.updateSecret({ secret, updateMask: { paths: ['version_destroy_ttl'] } });
    assert.equal(Number((changed['versionDestroyTtl'] as { seconds: unknown }).seconds), seconds);
    const version = { name: `${SECRET}/versions/1` };
    const [scheduled] = await client.destroySecretVersion(version);
    const due = Number((scheduled['scheduledDestroyTime'] as { seconds: unknown }).seconds);
    assert.deepEqual(
      [scheduled['state'], Math.abs(due - Date.now() / 1000 - seconds) < 600],
      ['DISABLED', true],
    );
    double.passTime(Date.now() + (seconds + 60) * 1000);
    const [versions] = await client.listSecretVersions({ parent: SECRET });
    assert.equal(versions.at(-1)?.['state'], 'DESTROYED');
  });

  suite('a regional secret lives at the endpoint of its location: made, read, rotated, listed, deleted', () =>
    withClient(async ({ client }) => {
      const parent = REGION;
      const name = `${parent}/secrets/s`;
      const key = { kmsKeyName: KEY };
      await client.createSecret({ parent, secretId: 's', secret: { customerManagedEncryption: key } });
      const [read] = await client.getSecret({ name });
      assert.deepEqual(
        [read['name'], read['replication'], plain(read['customerManagedEncryption'])],
        ['projects/123456/locations/europe-west3/secrets/s', null, key],
      );
      const data = Buffer.from('one');
      const [added] = await client.addSecretVersion({ parent: name, payload: { data } });
      assert.equal(added['name'], 'projects/123456/locations/europe-west3/secrets/s/versions/1');
      const [payload] = await client.accessSecretVersion({ name: `${name}/versions/latest` });
      assert.equal(Buffer.from(payloadOf(payload).data).toString(), 'one');
      const [versions] = await client.listSecretVersions({ parent: name, filter: 'state:ENABLED' });
      assert.equal(versions.length, 1);
      const [disabled] = await client.disableSecretVersion({ name: `${name}/versions/1` });
      assert.equal(disabled['state'], 'DISABLED');
      await client.deleteSecret({ name });
      assert.equal((await refusal(client.getSecret({ name }))).code, 5);
    }, 'localhost'));

  test('of permissions it says those that are there, and none for a secret that is not', async (scene) => {
    const permissions = ['secretmanager.versions.add', 'secretmanager.versions.access'];
    const [none] = await scene.client.testIamPermissions({ resource: SECRET, permissions });
    assert.deepEqual(none['permissions'], []);
    await makeSecret(scene);
    scene.double.denied = new Set(['secretmanager.versions.add']);
    const [some] = await scene.client.testIamPermissions({ resource: SECRET, permissions });
    assert.deepEqual(some['permissions'], ['secretmanager.versions.access']);
  });

  const made =
    (secret: object, parent: string = PARENT) =>
    ({ client }: ClientScene) =>
      client.createSecret({ parent, secretId: 's', secret });
  const changed =
    (fields: object, path: string) =>
    async (scene: ClientScene): Promise<void> => {
      await makeSecret(scene);
      await scene.client.updateSecret({ secret: { name: SECRET, ...fields }, updateMask: { paths: [path] } });
    };
  const automatic = { customerManagedEncryption: { kmsKeyName: KEY } };
  /** Rejected calls, each with its code and message. */
  const REFUSED: readonly (readonly [
    name: string,
    code: number,
    says: RegExp,
    call: (scene: ClientScene) => Promise<unknown>,
  ])[] = [
    ['no such secret', 5, /not found/, ({ client }) => client.getSecret({ name: SECRET })],
    [
      'a secret without versions',
      5,
      /not found or has no versions/,
      async (scene) => {
        await makeSecret(scene);
        await scene.client.accessSecretVersion({ name: `${SECRET}/versions/latest` });
      },
    ],
    [
      'made twice',
      6,
      /already exists/,
      async (scene) => {
        await makeSecret(scene);
        await makeSecret(scene);
      },
    ],
    [
      'a delay of destruction of less than a day',
      3,
      /version_destroy_ttl/,
      changed({ versionDestroyTtl: { seconds: 3600 } }, 'version_destroy_ttl'),
    ],
    [
      'replication changed later',
      3,
      /cannot be updated/,
      changed({ replication: { userManaged: { replicas: [{ location: 'europe-west1' }] } } }, 'replication'),
    ],
    ['upper case in a label', 3, /label/, made({ replication: { automatic: {} }, labels: { a: 'B' } })],
    ['no replication', 3, /replication/, made({})],
    ['one byte too many', 3, /too large/, (scene) => makeSecret(scene, ['x'.repeat(LIMIT + 1)])],
    ['a key of another location', 3, /must be in the location/, made({ replication: { automatic } })],
    ['a regional secret at the endpoint of the others', 3, /endpoint of their location/, made({}, REGION)],
  ];
  for (const [name, code, says, call] of REFUSED)
    test(`refused: ${name}`, async (scene) => {
      const error = await refusal(call(scene));
      assert.equal(error.code, code, error.message);
      assert.match(error.message, says);
    });

  test('a missing permission, a disabled API, a used-up quota and a refused token come with their details', async ({
    double,
    client,
  }) => {
    double.denied = new Set(['secretmanager.secrets.get']);
    const denied = await refusal(client.getSecret({ name: SECRET }));
    assert.deepEqual(
      [denied.code, denied.reason, denied.domain, denied.errorInfoMetadata?.['permission']],
      [7, 'IAM_PERMISSION_DENIED', 'iam.googleapis.com', 'secretmanager.secrets.get'],
    );
    double.denied = new Set();
    double.faults = [{ rpc: 'GetSecret', code: 'PERMISSION_DENIED', info: 'SERVICE_DISABLED' }];
    assert.equal((await refusal(client.getSecret({ name: SECRET }))).reason, 'SERVICE_DISABLED');
    double.faults = [{ rpc: 'GetSecret', code: 'RESOURCE_EXHAUSTED' }];
    assert.equal((await refusal(client.getSecret({ name: SECRET }))).code, 8);
    double.faults = [];
    double.identity.revokeAll();
    assert.equal((await refusal(client.getSecret({ name: SECRET }))).code, 16);
  });
}
