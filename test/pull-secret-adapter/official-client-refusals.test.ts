// deadline: 400 s
/** What the double of Secret Manager refuses, and the errors that Google's own client makes of it. */
import assert from 'node:assert/strict';
import { findPlanted } from '../support/canary.ts';
import { type Case, suite, table } from '../support/suite.ts';
import {
  type ClientScene,
  makeSecret,
  missingClient,
  PARENT,
  refusal,
  SECRET,
  withClient,
} from './official-client-scene.ts';

const test = suite("refusals of the double of Secret Manager under Google's client");
/** The largest payload. */
const LIMIT = 65_536;

interface Refusing extends Case {
  readonly call: (scene: ClientScene) => Promise<unknown>;
  readonly code: number;
  readonly says: RegExp;
}

if (missingClient !== undefined) test.skip('everything', missingClient);
else {
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
        await makeSecret(scene);
        await scene.client.accessSecretVersion({ name: `${SECRET}/versions/latest` });
      },
      code: 5,
      says: /not found or has no versions/,
    },
    {
      name: 'made twice',
      reason: 'ALREADY_EXISTS',
      call: async (scene) => {
        await makeSecret(scene);
        await makeSecret(scene);
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
        await makeSecret(scene, ['x'.repeat(LIMIT)]);
        await scene.client.addSecretVersion({
          parent: SECRET,
          payload: { data: Buffer.alloc(LIMIT + 1, 'x') },
        });
      },
      code: 3,
      says: /too large/,
    },
    {
      name: 'a key of another location',
      reason: 'INVALID_ARGUMENT: it has to be where the replica is, and global for replication everywhere',
      call: ({ client }) =>
        client.createSecret({
          parent: PARENT,
          secretId: 's',
          secret: {
            replication: {
              automatic: {
                customerManagedEncryption: {
                  kmsKeyName: 'projects/p/locations/europe-west3/keyRings/r/cryptoKeys/k',
                },
              },
            },
          },
        }),
      code: 3,
      says: /must be in the location/,
    },
    {
      name: 'a regional secret at the endpoint of the others',
      reason: 'INVALID_ARGUMENT',
      call: ({ client }) =>
        client.createSecret({ parent: `${PARENT}/locations/europe-west3`, secretId: 's', secret: {} }),
      code: 3,
      says: /endpoint of their location/,
    },
    {
      name: 'a delay of destruction of less than a day',
      reason: 'INVALID_ARGUMENT',
      call: async (scene) => {
        await makeSecret(scene);
        const secret = { name: SECRET, versionDestroyTtl: { seconds: 3600 } };
        await scene.client.updateSecret({ secret, updateMask: { paths: ['version_destroy_ttl'] } });
      },
      code: 3,
      says: /version_destroy_ttl/,
    },
    {
      name: 'replication changed later',
      reason: 'it cannot be',
      call: async (scene) => {
        await makeSecret(scene);
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
    withClient(async (scene) => {
      const error = await refusal(row.call(scene));
      assert.equal(error.code, row.code, error.message);
      assert.match(error.message, row.says);
    }),
  );

  test('a missing permission, a disabled API, a used-up quota and a refused token come with their details', () =>
    withClient(async ({ double, client }) => {
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

  test('what the client says about a failure holds no payload', () =>
    withClient(async ({ double, client }) => {
      double.faults = [{ rpc: 'GetSecret', html: true }];
      const error = await refusal(client.getSecret({ name: SECRET }));
      assert.equal(findPlanted(error.message), undefined);
    }));
}

test.run();
