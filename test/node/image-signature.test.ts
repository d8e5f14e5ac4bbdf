// deadline: 240 s
// needs: node
/**
 * Signatures of a release's image, verified by a node: CRI-O with the policy of docs/install.md, which requires signatures by the
 * release's key in the registry.
 */
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Descriptor } from '../../build/image/layout.ts';
import { envelope, signImage, signingKey } from '../../build/sign.ts';
import { docBlocks } from '../support/doc-blocks.ts';
import { type Case, table, test } from '../support/suite.ts';
import { Journey } from './machine/journey.ts';
import { podOf } from './machine/node.ts';
import { waiterImage } from './machine/registries.ts';
import { inMachine } from './machine/steps.ts';

const HOST = 'registry.example.com';
const [POLICY, ATTACHMENTS] = ['"sigstoreSigned"', 'use-sigstore-attachments'].map(
  (words) => docBlocks('docs/install.md').find(({ text }) => text.includes(words))?.text ?? '',
) as [string, string];
const KEY = '/etc/pki/pullwright/release.pub';

interface Row extends Case {
  readonly repository: string;
  /** @default {the image itself} */
  readonly signed?: 'nothing' | 'another image';
  readonly by?: 'another key';
  /** The repository that the signature names. @default {its own} */
  readonly as?: string;
  /** Error of the kubelet; absent: the pod runs. */
  readonly refused?: RegExp;
}

const rows: readonly Row[] = [
  { name: 'an image as a release signs it', reason: 'nodes take it', repository: 'good' },
  {
    name: 'an image that nobody signed',
    reason: 'whoever asks for a signature takes nothing without',
    repository: 'bare',
    signed: 'nothing',
    refused: /A signature was required, but no signature exists/,
  },
  {
    name: 'the signature of another image in the place of its own',
    reason: 'who can write to the registry can put it there',
    repository: 'moved',
    signed: 'another image',
    refused: /Signature for docker digest|digest .*does not match/i,
  },
  {
    name: 'the signature of another key',
    reason: 'anybody can make one',
    repository: 'forged',
    by: 'another key',
    refused: /signature verification failed|invalid signature/i,
  },
  {
    name: 'the signature for another repository',
    reason: 'the same key may sign something else',
    repository: 'renamed',
    as: `${HOST}/other/product`,
    refused: /identity .*is not accepted/i,
  },
];

await inMachine(import.meta.filename, async () => {
  const { node, plane, make } = await Journey.start();
  const { folder } = node;
  const registry = node.registry(HOST);
  const pair = (): { readonly pem: string; readonly pub: string } => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    return {
      pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      pub: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    };
  };
  const [ours, another] = [pair(), pair()];
  write(KEY, ours.pub);
  write('/etc/containers/policy.json', POLICY);
  write('/etc/containers/registries.d/pullwright.yaml', ATTACHMENTS);
  await plane.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/dockerconfigjson',
    metadata: { name: 'pull', namespace: 'default' },
    stringData: { '.dockerconfigjson': registry.config() },
  });

  table(test, rows, async ({ repository, signed, by, as, refused }) => {
    const name = `pullwright/${repository}`;
    const [mine, theirs] = [repository, `${repository}-other`].map((mark) =>
      waiterImage(folder, node.binaries.waiter, mark),
    ) as [string, string];
    registry.push(mine, `${name}:1`);
    const signatures = join(folder, `signatures-${repository}`);
    const digests = digestsIn(signed === 'another image' ? theirs : mine);
    const key = signingKey(by === undefined ? ours.pem : another.pem);
    signImage(
      key,
      { repository: as ?? `${HOST}/${name}`, digests, attestation: envelope(key, {}) },
      signatures,
    );
    for (const [at, digest] of signed === 'nothing' ? [] : digestsIn(mine).entries())
      registry.push(`${signatures}:${tagOf(digests[at] ?? '')}`, `${name}:${tagOf(digest)}`);
    const pod = podOf(repository, `${HOST}/${name}:1`, 'default', { imagePullSecrets: [{ name: 'pull' }] });
    await make(pod, refused);
  });
  test.lastly('the machine stops', () => node.stop());
});

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function tagOf(digest: string): string {
  return `${digest.replace(':', '-')}.sig`;
}

/** Digests of the index and of its images. */
function digestsIn(layout: string): readonly string[] {
  const folder = layout.slice(0, layout.lastIndexOf(':'));
  const read = (path: string): { readonly manifests: readonly Descriptor[] } =>
    JSON.parse(readFileSync(join(folder, path), 'utf8')) as { readonly manifests: readonly Descriptor[] };
  return read('index.json').manifests.flatMap(({ digest }) => [
    digest,
    ...read(join('blobs', digest.replace(':', '/'))).manifests.map((image) => image.digest),
  ]);
}
