/** Token sources of the Job, end to end through google-auth-library. Runs from source and compiled. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { federationCredentials } from '../../runtime/pull-secret-adapter/objects.ts';
import { plantedPassword } from '../support/canary.ts';
import { type Case, type TestSuite, table } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import type { SecretManagerDouble } from './doubles/secret-manager.ts';
import { TokenProxy } from './doubles/token-proxy.ts';
import { doubled, withDouble } from './job-scenarios.ts';
import { type JobRunner, PATH } from './run-job.ts';

const MANAGER = 'pullsecret-manager@cust-proj.iam.gserviceaccount.com';
const PROVIDER = 'projects/1/locations/global/workloadIdentityPools/pool/providers/openshift';
const TAKE_ON = { GCP_SERVICE_ACCOUNT: MANAGER };

function origins(double: SecretManagerDouble): readonly (string | undefined)[] {
  return [...new Set(double.calls.map((call) => call.identity))];
}

/** Writes the credential file of Workload Identity Federation, and the token of the pod that it names. */
function federation(
  double: SecretManagerDouble,
  folder: string,
  more: object = {},
): Readonly<Record<string, string>> {
  const { identity } = double;
  identity.subjectToken = plantedPassword('service-account-token');
  identity.audience = `//iam.googleapis.com/${PROVIDER}`;
  const token = join(folder, 'token');
  writeFileSync(token, identity.subjectToken, { mode: 0o600 });
  const file = join(folder, 'federation.json');
  // The file that the charts render, except for two addresses that differ here.
  const credentials = {
    ...federationCredentials(PROVIDER),
    token_url: `${double.url}/v1/token`,
    credential_source: { file: token },
    ...more,
  };
  writeFileSync(file, JSON.stringify(credentials));
  return { GOOGLE_APPLICATION_CREDENTIALS: file };
}

interface Failing extends Case {
  readonly prepare: (double: SecretManagerDouble) => void;
  readonly env?: Readonly<Record<string, string>>;
  readonly code: number;
  readonly is: string;
  readonly says?: RegExp;
}

const NONE = { code: 69, is: 'IdentityUnavailable' } as const;

const FAILING: readonly Failing[] = [
  {
    name: 'the metadata server is down',
    reason: 'tried again later',
    prepare: ({ identity }) => (identity.metadata = 'down'),
    ...NONE,
  },
  {
    name: 'nothing listens where the metadata server should be',
    reason: 'tried again later',
    prepare: () => undefined,
    env: { GCE_METADATA_HOST: '127.0.0.1:1' },
    ...NONE,
  },
  {
    name: 'the metadata server does not answer',
    reason: 'the library would wait for ever',
    prepare: ({ identity }) => (identity.metadata = 'silent'),
    env: { GCP_API_TIMEOUT: '2s' },
    ...NONE,
  },
  {
    name: 'something else answers for the metadata server',
    reason: 'its page is no token',
    prepare: ({ identity }) => (identity.metadata = 'html'),
    ...NONE,
  },
  {
    name: 'no Google service account is bound, and another is to be taken on',
    reason: 'the binding is at fault, not the right to take on',
    prepare: ({ identity }) => (identity.metadata = 'unbound'),
    env: TAKE_ON,
    ...NONE,
    says: /HTTP 404.*iam\.gke\.io\/gcp-service-account/,
  },
  {
    name: 'taking on is refused',
    reason: 'names the role and the account',
    prepare: ({ identity }) => (identity.denyImpersonation = true),
    env: TAKE_ON,
    code: 77,
    is: 'IamPermissionDenied',
    says: /"pullsecret-manager@cust-proj\.iam\.gserviceaccount\.com".*serviceAccountTokenCreator/,
  },
  {
    name: 'the account to take on does not exist',
    reason: 'another cause than a missing role',
    prepare: ({ identity }) => (identity.unknownAccount = true),
    env: TAKE_ON,
    code: 77,
    is: 'IamPermissionDenied',
    says: /service account not found/,
  },
  {
    name: 'no token is accepted',
    reason: 'one new token is tried, no more',
    prepare: (double) => (double.faults = [{ rpc: 'GetSecret', code: 'UNAUTHENTICATED' }]),
    ...NONE,
  },
  {
    name: 'a credential file that is none',
    reason: 'names the variable',
    prepare: () => undefined,
    env: { GOOGLE_APPLICATION_CREDENTIALS: '/dev/null' },
    ...NONE,
    says: /GOOGLE_APPLICATION_CREDENTIALS/,
  },
];

export function jobIdentities(suite: TestSuite, run: JobRunner): void {
  const test = doubled(suite);
  test('Workload Identity: the metadata server gives the token', async (double) => {
    assert.equal((await run(double)).code, 0);
    assert.deepEqual(origins(double), ['metadata']);
    assert.deepEqual(double.identity.impersonated, [], 'empty: its own identity');
    const asked = ['GET /computeMetadata/v1/instance/service-accounts/default/token'];
    assert.deepEqual(double.identity.requests, asked, 'nothing but a token is asked for');
  });

  test('the identity that may write is taken on, once in a run', async (double) => {
    assert.equal((await run(double, TAKE_ON)).code, 0);
    assert.deepEqual(double.identity.impersonated, [MANAGER]);
    assert.deepEqual(origins(double), ['impersonation']);
  });

  test('a token that expires while the run goes on is replaced before it is used', async (double) => {
    double.identity.tokenSeconds = 3;
    double.faults = [
      { rpc: 'CreateSecret', delayMs: 3500 },
      { rpc: 'AddSecretVersion', delayMs: 3500 },
    ];
    const { code, result } = await run(double, TAKE_ON);
    assert.equal(code, 0, result.message);
    assert.deepEqual(
      double.calls.map((call) => call.code),
      ['NOT_FOUND', 'OK', 'OK', 'OK'],
      'no call with an old token',
    );
  });

  test('a token that is withdrawn while the run goes on is replaced once it is refused', async (double) => {
    // Time to withdraw it between this call and the next.
    double.faults = [{ rpc: 'CreateSecret', after: true, delayMs: 1000 }];
    let withdrawn = false;
    const { code, result } = await run(double, TAKE_ON, {
      // Looked at while the run goes on; never interrupts.
      interruptWhen: () => {
        if (!withdrawn && double.calls.at(-1)?.rpc === 'CreateSecret') {
          double.identity.revokeAll();
          withdrawn = true;
        }
        return false;
      },
    });
    assert.equal(code, 0, result.message);
    const codes = double.calls.map((call) => `${call.rpc} ${call.code}`);
    assert.deepEqual(codes.slice(2, 4), ['AddSecretVersion UNAUTHENTICATED', 'AddSecretVersion OK']);
  });

  test('IAM Credentials fails once', async (double) => {
    double.identity.impersonationFailures = [503, 503];
    const { code, result } = await run(double, TAKE_ON);
    assert.equal(code, 0, result.message);
    assert.deepEqual(origins(double), ['impersonation']);
  });

  test('Workload Identity Federation: the token of the pod is exchanged', async (double) => {
    const folder = tempFolder();
    const { code, result } = await run(double, {
      ...federation(double, folder),
      METADATA_SERVER_DETECTION: 'none',
    });
    assert.equal(code, 0, result.message);
    assert.deepEqual(origins(double), ['federation']);
    assert.equal(double.secrets.get(PATH)?.versions.length, 1);
  });

  test('federation with an account of its own, and then the one of the customer', async (double) => {
    const folder = tempFolder();
    const own = 'job@mgmt-project.iam.gserviceaccount.com';
    const url = `${double.url}/v1/projects/-/serviceAccounts/${own}:generateAccessToken`;
    const env = federation(double, folder, { service_account_impersonation_url: url });
    const { code, result } = await run(double, { ...env, ...TAKE_ON });
    assert.equal(code, 0, result.message);
    assert.deepEqual(double.identity.impersonated, [own, MANAGER]);
  });

  test('federation that does not trust the token says where to look', async (double) => {
    const folder = tempFolder();
    const env = federation(double, folder);
    double.identity.audience = 'another';
    const { code, result } = await run(double, env);
    assert.deepEqual([code, result.reason], [69, 'IdentityUnavailable']);
    assert.match(result.message, /HTTP 400.*GOOGLE_APPLICATION_CREDENTIALS/);
  });

  table(suite, FAILING, (row) =>
    withDouble(async (double) => {
      row.prepare(double);
      const { code, result } = await run(double, row.env);
      assert.deepEqual([code, result.reason], [row.code, row.is], result.message);
      if (row.says !== undefined) assert.match(result.message, row.says);
      assert.equal(double.secrets.size, 0);
    }),
  );
}

/** Only for a program: the certificates that it trusts are read when it starts. */
export function jobKeyFile(suite: TestSuite, run: JobRunner): void {
  const test = doubled(suite);
  test('a key file: the assertion is signed with it, and the token endpoint gives the token, through a proxy', async (double) => {
    const folder = tempFolder();
    const { privateKey, publicKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    });
    double.identity.publicKey = publicKey;
    const proxy = await TokenProxy.start(double.port);
    try {
      const key = {
        type: 'service_account',
        client_email: 'job@mgmt-project.iam.gserviceaccount.com',
        private_key: privateKey,
        private_key_id: '1',
        token_uri: 'https://oauth2.googleapis.com/token',
      };
      const [file, ca] = [join(folder, 'key.json'), join(folder, 'ca.pem')];
      writeFileSync(file, JSON.stringify(key), { mode: 0o600 });
      writeFileSync(ca, proxy.ca);
      const { code, result } = await run(double, {
        GOOGLE_APPLICATION_CREDENTIALS: file,
        HTTPS_PROXY: proxy.url,
        NO_PROXY: '127.0.0.1',
        NODE_EXTRA_CA_CERTS: ca,
      });
      assert.equal(code, 0, result.message);
      assert.deepEqual(origins(double), ['key']);
      assert.deepEqual([...new Set(proxy.connects)], ['oauth2.googleapis.com:443']);
    } finally {
      await proxy.close();
    }
  });
}
