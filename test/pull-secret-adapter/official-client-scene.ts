/** Google's client of Secret Manager on our double, with a token that Google's auth library got from the double of the metadata server. */
import { SecretManagerDouble } from './doubles/secret-manager.ts';
import { type OfficialClient, officialClient, type Reply } from './official-client.ts';

export const PARENT = 'projects/p';
export const SECRET: string = `${PARENT}/secrets/s`;

/** Google's client and the double that answers it. */
export interface ClientScene {
  readonly double: SecretManagerDouble;
  readonly client: OfficialClient;
}

/** What the client throws for a refused call; `code` is the number of the canonical code. */
export interface Refused extends Error {
  readonly code: number;
  readonly reason?: string;
  readonly domain?: string;
  readonly errorInfoMetadata?: Readonly<Record<string, string>>;
}

const Client = await officialClient();

/** Why there is no client on this machine, for `test.skip`. */
export const missingClient: string | undefined = typeof Client === 'string' ? Client : undefined;

/** Runs the body with a fresh double, and closes both ends whatever happens. */
export function withClient(body: (scene: ClientScene) => Promise<void>): Promise<void> {
  return withClientAt('127.0.0.1', body);
}

/** The same, with a client of the endpoint of a location. */
export function withRegionalClient(body: (scene: ClientScene) => Promise<void>): Promise<void> {
  return withClientAt('localhost', body);
}

async function withClientAt(apiEndpoint: string, body: (scene: ClientScene) => Promise<void>): Promise<void> {
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
export async function makeSecret({ client }: ClientScene, payloads: readonly string[] = []): Promise<void> {
  const secret = { replication: { automatic: {} }, labels: { 'managed-by': 'hyperfleet' } };
  await client.createSecret({ parent: PARENT, secretId: 's', secret });
  for (const data of payloads)
    await client.addSecretVersion({ parent: SECRET, payload: { data: Buffer.from(data) } });
}

/** The error of a call that must be refused. */
export async function refusal(call: Promise<unknown>): Promise<Refused> {
  const ended = await Promise.allSettled([call]);
  if (ended[0].status === 'fulfilled') throw new Error('was not refused');
  return ended[0].reason as Refused;
}

export function payloadOf(reply: Reply): { readonly data: Uint8Array; readonly dataCrc32c: unknown } {
  return reply['payload'] as { data: Uint8Array; dataCrc32c: unknown };
}
