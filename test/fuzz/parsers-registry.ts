/** Answers of registries and their token services: headers, tokens, manifests. All of it is untrusted. */
import { createHash } from 'node:crypto';
import { parseImageReference } from '../../runtime/core/image-reference.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { retryAfterMs } from '../../runtime/http/client.ts';
import { tooLarge } from '../../runtime/http/http-error.ts';
import { RegistryClient } from '../../runtime/registry/client.ts';
import { credentialsOf, fetchToken } from '../../runtime/registry/token.ts';
import type { RegistryTransport, Request, Response } from '../../runtime/registry/transport.ts';
import { plantedPassword } from '../support/canary.ts';
import { jsonOf } from './corpus.ts';
import { holds, type Parser } from './parser.ts';

const CREDENTIAL = credentialsOf({ username: 'robot', password: redact(plantedPassword('registry')) });
const MANIFEST = jsonOf({ schemaVersion: 2 });

interface Scripted {
  readonly status?: number;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A registry whose every answer is made by `answer`. */
function transport(answer: (request: Request) => Scripted): RegistryTransport {
  const send = (request: Request): Promise<Response> => {
    const { status = 200, text = '', headers = {} } = answer(request);
    const bytes = Buffer.from(text);
    return Promise.resolve({
      status,
      header: (name: string) => headers[name],
      body: (async function* () {
        yield bytes;
      })(),
      bytes: (limit: number) =>
        bytes.length > limit ? Promise.reject(tooLarge(limit)) : Promise.resolve(bytes),
      discard: () => undefined,
    });
  };
  return { send, isPlain: () => false, close: () => undefined } as unknown as RegistryTransport;
}

function client(answer: (request: Request) => Scripted): RegistryClient {
  return new RegistryClient({ transport: transport(answer), credentialFor: () => CREDENTIAL });
}

const PARSED = parseImageReference('r.io/a/b:1');
const REFERENCE = PARSED.ok ? PARSED.reference : undefined;

export const REGISTRY_PARSERS: readonly Parser[] = [
  {
    name: 'answer of a token service',
    corpus: [
      jsonOf({ token: plantedPassword('token'), expires_in: 300 }),
      jsonOf({ access_token: plantedPassword('access'), expires_in: '300' }),
    ],
    run: (text) =>
      fetchToken(
        transport(() => ({ text })),
        {
          challenge: { scheme: 'bearer', realm: 'https://auth.example.com/token' },
          domain: 'r.io',
          scope: 'repository:a:pull',
          credential: CREDENTIAL,
          chosenBy: 'tenant',
          signal: new AbortController().signal,
        },
      ),
  },
  {
    name: 'challenge, redirect and refusal of a registry',
    corpus: [
      'Bearer realm="https://auth.example.com/token?a=b",service="r.io",scope="repository:a:pull"',
      'Basic realm="x"',
      'https://blobs.example.com/a',
      '/v2/other',
      '120',
      'Wed, 21 Oct 2026 07:28:00 GMT',
    ],
    unit: 'a',
    run: async (text) => {
      const says = (status: number) =>
        client(({ url }) => ({
          status: url.host === 'auth.example.com' ? 200 : status,
          text: jsonOf({ token: plantedPassword('token') }),
          headers: {
            'www-authenticate': text,
            location: text,
            'retry-after': text,
            'content-type': text,
            'docker-content-digest': text,
            'content-length': text,
          },
        }));
      const answers: unknown[] = [];
      for (const status of [200, 301, 401, 404, 429, 503])
        answers.push(await said(() => says(status).headManifest(reference())));
      const wait = retryAfterMs(text, 0);
      holds(wait === undefined || (Number.isFinite(wait) && wait >= 0), 'the wait');
      return answers;
    },
  },
  {
    name: 'digest of a manifest',
    corpus: ['sha256', 'sha512'].map((name) => `${name}:${createHash(name).update(MANIFEST).digest('hex')}`),
    unit: 'a',
    run: (text) =>
      client(() => ({ text: MANIFEST, headers: { 'docker-content-digest': text } })).manifest(reference()),
  },
];

function reference(): NonNullable<typeof REFERENCE> {
  if (REFERENCE === undefined) throw new Error('no reference');
  return REFERENCE;
}

/** The answer, or the text of a failure that is one of ours. */
async function said(work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error && error.name === 'RegistryError') return error.message;
    throw error;
  }
}
