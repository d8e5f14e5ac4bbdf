/** What registries and their token services answer: headers, tokens, manifests, layers. All of it is chosen by whoever runs them. */
import { createHash } from 'node:crypto';
import { tooLarge } from '../../runtime/http/http-error.ts';
import { retryAfterMs } from '../../runtime/http/retry.ts';
import { RegistryClient } from '../../runtime/registry/client.ts';
import { imageConfig, imageFiles, imageManifest } from '../../runtime/registry/image.ts';
import { readTar } from '../../runtime/registry/tar.ts';
import { credentialsOf, fetchToken } from '../../runtime/registry/token.ts';
import type { RegistryTransport, Request, Response } from '../../runtime/registry/transport.ts';
import { parseReferences } from '../../runtime/registry-overrides/release-image.ts';
import { parseImageReference } from '../../runtime/rules/auth-lookup/image-reference.ts';
import { redact } from '../../runtime/rules/redacted.ts';
import { plantedPassword } from '../support/canary.ts';
import { jsonOf } from './corpus.ts';
import { holds, type Parser } from './parser.ts';

const CREDENTIAL = credentialsOf({ username: 'robot', password: redact(plantedPassword('registry')) });
const DIGEST = `sha256:${'ab'.repeat(32)}`;
const MANIFEST = jsonOf({
  schemaVersion: 2,
  mediaType: 'application/vnd.oci.image.manifest.v1+json',
  config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: DIGEST, size: 2 },
  layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', digest: DIGEST, size: 2 }],
  architecture: 'amd64',
});
const INDEX = jsonOf({
  manifests: [
    { digest: DIGEST, platform: { os: 'linux', architecture: 'amd64' } },
    { digest: DIGEST, platform: { os: 'linux', architecture: 'arm64' } },
  ],
});
const CONFIG = jsonOf({ architecture: 'amd64', config: { Labels: { 'io.openshift.release': '4.20.0' } } });

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

function digestOf(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

/** An archive of one file whose header has a sum that is right, whatever else is wrong with it. */
function archive(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  const whole = Buffer.alloc(Math.max(1024, Math.ceil(bytes.length / 512) * 512));
  bytes.copy(whole);
  let sum = 0;
  for (let at = 0; at < 512; at += 1) sum += at >= 148 && at < 156 ? 32 : (whole[at] ?? 0);
  whole.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return whole;
}

function tarText(name: string, size: string, type = '0'): string {
  const header = Buffer.alloc(512);
  header.write(name, 0, 'latin1');
  header.write(size, 124, 'latin1');
  header.write(type, 156, 'latin1');
  header.write('ustar', 257, 'latin1');
  return `${header.toString('latin1')}hello${'\0'.repeat(507)}`;
}

const TAR_WANTED = { names: new Set(['a/b']), maxBytes: 1000 };

export const REGISTRY_PARSERS: readonly Parser[] = [
  {
    name: 'answer of a token service',
    corpus: [
      jsonOf({ token: plantedPassword('token'), expires_in: 300 }),
      jsonOf({ access_token: plantedPassword('access'), expires_in: '300' }),
    ],
    unit: '[',
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
    name: 'manifest and index of an image',
    corpus: [MANIFEST, INDEX],
    unit: `{"digest":"${DIGEST}"},`,
    run: async (text) => {
      const from = client(({ url }) => ({ text: url.pathname.includes('/blobs/') ? CONFIG : text }));
      const image = await imageManifest(from, reference(), 'amd64');
      const files = said(() => imageFiles(from, reference(), image, { names: ['a'], maxBytes: 10 }));
      return [image, await said(() => imageConfig(from, reference(), image)), await files];
    },
  },
  {
    name: 'configuration of an image',
    corpus: [CONFIG],
    unit: '[',
    run: async (text) => {
      const manifest = jsonOf({ config: { digest: digestOf(text) }, layers: [] });
      const from = client(({ url }) => ({ text: url.pathname.includes('/blobs/') ? text : manifest }));
      const image = await imageManifest(from, reference(), 'amd64');
      const { labels } = await imageConfig(from, reference(), image);
      for (const value of Object.values(labels)) holds(typeof value === 'string', 'a label');
      return labels;
    },
  },
  {
    name: 'layer of an image',
    corpus: [
      tarText('a/b', '00000000005\0'),
      tarText('./a/b', '\u0080\0\0\0\0\0\0\0\0\0\0\u0005'),
      tarText('x', '00000000005\0', 'L'),
    ],
    unit: '\0',
    run: async (text) => {
      const source = async function* () {
        yield archive(text);
      };
      const files = await readTar(source(), TAR_WANTED);
      for (const bytes of files.values()) holds(bytes.length <= TAR_WANTED.maxBytes, 'the limit');
      return [...files.keys()];
    },
  },
  {
    name: 'references of a release',
    corpus: [
      jsonOf({
        kind: 'ImageStream',
        metadata: { name: '4.20.0' },
        spec: { tags: [{ name: 'cli', from: { name: `quay.io/a@${DIGEST}` } }] },
      }),
    ],
    unit: '{"name":"a","from":{"name":"b"}},',
    run: (text) => {
      const found = parseReferences(text);
      return found && [found.name, ...found.components];
    },
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
