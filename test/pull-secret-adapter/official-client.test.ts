// deadline: 400 s
/**
 * The double of Secret Manager under Google's own client, over REST: requests, answers, error bodies and paging are read by code that is not
 * ours, with a token that Google's auth library got from the double of the metadata server.
 */
import assert from 'node:assert/strict';
import { findPlanted } from '../support/canary.ts';
import { type Case, suite, table } from '../support/suite.ts';
import { SecretManagerDouble } from './doubles/secret-manager.ts';
import { type OfficialClient, officialClient, type Reply } from './official-client.ts';

const test = suite("double of Secret Manager under Google's client");
const Client = await officialClient();
const PARENT = 'projects/p';
const SECRET = `${PARENT}/secrets/s`;
/** The largest payload. */
const LIMIT = 65_536;

interface Refused extends Error {
  readonly code: number;
  readonly reason?: string;
  readonly domain?: string;
  readonly errorInfoMetadata?: Readonly<Record<string, string>>;
}

interface Scene {
  readonly double: SecretManagerDouble;
  readonly client: OfficialClient;
}

if (typeof Client === 'string') test.skip('everything', Client);
else {
  const open = async (body: (scene: Scene) => Promise<void>): Promise<void> => {
    const double = await SecretManagerDouble.start();
    process.env['GCE_METADATA_HOST'] = double.host;
    process.env['METADATA_SERVER_DETECTION'] = 'assume-present';
    const client = new Client({
      fallback: true,
      protocol: 'http',
      apiEndpoint: '127.0.0.1',
      port: double.port,
      projectId: 'p',
    });
    try {
      await body({ double, client });
    } finally {
      await client.close();
      await double.close();
    }
  };

  const make = async ({ client }: Scene, payloads: readonly string[] = []): Promise<void> => {
    const secret = { replication: { automatic: {} }, labels: { 'managed-by': 'hyperfleet' } };
    await client.createSecret({ parent: PARENT, secretId: 's', secret });
    for (const data of payloads)
      await client.addSecretVersion({ parent: SECRET, payload: { data: Buffer.from(data) } });
  };

  const refusal = async (call: Promise<unknown>): Promise<Refused> => {
    try {
      await call;
    } catch (error) {
      return error as Refused;
    }
    throw new Error('was not refused');
  };

  const payloadOf = (reply: Reply): { readonly data: Uint8Array; readonly dataCrc32c: unknown } =>
    reply['payload'] as { data: Uint8Array; dataCrc32c: unknown };

  test('a secret comes back as it was made: number of the project, labels, replication, quoted etag, time', () =>
    open(async (scene) => {
      await make(scene);
      const [secret] = await scene.client.getSecret({ name: SECRET });
      assert.equal(secret['name'], 'projects/123456/secrets/s');
      assert.deepEqual(secret['labels'], { 'managed-by': 'hyperfleet' });
      assert.equal(secret['etag'], '"1"');
      assert.ok('automatic' in (secret['replication'] as object));
      const { seconds } = secret['createTime'] as { seconds: string | number };
      assert.ok(Math.abs(Number(seconds) - Date.now() / 1000) < 600);
      assert.deepEqual([...new Set(scene.double.calls.map((call) => call.identity))], ['metadata']);
    }));

  test('CRC32C goes both ways as int64, and a wrong one is refused', () =>
    open(async (scene) => {
      await make(scene);
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
    }));

  test('"latest" is the version made last, also when it is disabled or destroyed', () =>
    open(async (scene) => {
      const { client } = scene;
      await make(scene, ['one', 'two']);
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
      const [seen] = await client.getSecretVersion(latest);
      assert.equal(seen['state'], 'DISABLED');
      await client.enableSecretVersion({ name: `${SECRET}/versions/2` });
      const [destroyed] = await client.destroySecretVersion({ name: `${SECRET}/versions/2` });
      assert.deepEqual([destroyed['state'], destroyed['destroyTime'] === null], ['DESTROYED', false]);
      assert.equal((await refusal(client.accessSecretVersion(latest))).code, 9);
      assert.equal((await refusal(client.enableSecretVersion({ name: `${SECRET}/versions/2` }))).code, 9);
    }));

  test('an alias is followed', () =>
    open(async (scene) => {
      await make(scene, ['one', 'two']);
      const secret = { name: SECRET, versionAliases: { current: 1 } };
      await scene.client.updateSecret({ secret, updateMask: { paths: ['version_aliases'] } });
      const [read] = await scene.client.accessSecretVersion({ name: `${SECRET}/versions/current` });
      assert.equal(read['name'], 'projects/123456/secrets/s/versions/1');
    }));

  test('a mask changes what it names, an etag guards it, and every update makes a new one', () =>
    open(async (scene) => {
      const { client } = scene;
      await make(scene);
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
    }));

  test('versions are listed newest first, by pages, and by state', () =>
    open(async (scene) => {
      await make(scene, ['1', '2', '3', '4', '5']);
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
      const [page, next, raw] = await scene.client.listSecretVersions(
        { parent: SECRET, pageSize: 3 },
        { autoPaginate: false },
      );
      assert.deepEqual([page.length, next === null, raw['totalSize']], [3, false, 5]);
      const [enabled] = await scene.client.listSecretVersions({ parent: SECRET, filter: 'state:ENABLED' });
      assert.equal(enabled.length, 4);
      const [secrets] = await scene.client.listSecrets({ parent: PARENT });
      assert.equal(secrets.length, 1);
    }));

  interface Refusing extends Case {
    readonly call: (scene: Scene) => Promise<unknown>;
    readonly code: number;
    readonly says: RegExp;
  }

  const REFUSED: readonly Refusing[] = [
    {
      name: 'no such secret',
      reason: 'NOT_FOUND',
      call: ({ client }) => client.getSecret({ name: `${PARENT}/secrets/none` }),
      code: 5,
      says: /not found/,
    },
    {
      name: 'a secret without versions',
      reason: 'NOT_FOUND, for "latest" too',
      call: async (scene) => {
        await make(scene);
        await scene.client.accessSecretVersion({ name: `${SECRET}/versions/latest` });
      },
      code: 5,
      says: /not found or has no versions/,
    },
    {
      name: 'made twice',
      reason: 'ALREADY_EXISTS',
      call: async (scene) => {
        await make(scene);
        await make(scene);
      },
      code: 6,
      says: /already exists/,
    },
    {
      name: 'upper case in a label',
      reason: 'INVALID_ARGUMENT',
      call: ({ client }) =>
        client.createSecret({
          parent: PARENT,
          secretId: 's',
          secret: { replication: { automatic: {} }, labels: { a: 'B' } },
        }),
      code: 3,
      says: /label/,
    },
    {
      name: 'no replication',
      reason: 'INVALID_ARGUMENT',
      call: ({ client }) => client.createSecret({ parent: PARENT, secretId: 's', secret: {} }),
      code: 3,
      says: /replication/,
    },
    {
      name: 'one byte too many',
      reason: 'INVALID_ARGUMENT',
      call: async (scene) => {
        await make(scene, ['x'.repeat(LIMIT)]);
        await scene.client.addSecretVersion({
          parent: SECRET,
          payload: { data: Buffer.alloc(LIMIT + 1, 'x') },
        });
      },
      code: 3,
      says: /too large/,
    },
    {
      name: 'replication changed later',
      reason: 'it cannot be',
      call: async (scene) => {
        await make(scene);
        const secret = {
          name: SECRET,
          replication: { userManaged: { replicas: [{ location: 'europe-west1' }] } },
        };
        await scene.client.updateSecret({ secret, updateMask: { paths: ['replication'] } });
      },
      code: 3,
      says: /cannot be updated/,
    },
  ];
  table(test, REFUSED, (row) =>
    open(async (scene) => {
      const error = await refusal(row.call(scene));
      assert.equal(error.code, row.code, error.message);
      assert.match(error.message, row.says);
    }),
  );

  test('a missing permission, a disabled API, a used-up quota and a refused token come with their details', () =>
    open(async ({ double, client }) => {
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
    }));

  test('of permissions it says those that are there, and none for a secret that is not', () =>
    open(async (scene) => {
      const permissions = ['secretmanager.versions.add', 'secretmanager.versions.access'];
      const [none] = await scene.client.testIamPermissions({ resource: SECRET, permissions });
      assert.deepEqual(none['permissions'], []);
      await make(scene);
      scene.double.denied = new Set(['secretmanager.versions.add']);
      const [some] = await scene.client.testIamPermissions({ resource: SECRET, permissions });
      assert.deepEqual(some['permissions'], ['secretmanager.versions.access']);
    }));

  test('what the client says about a failure holds no payload', () =>
    open(async ({ double, client }) => {
      double.faults = [{ rpc: 'GetSecret', html: true }];
      const error = await refusal(client.getSecret({ name: SECRET }));
      assert.equal(findPlanted(error.message), undefined);
    }));
}

test.run();
