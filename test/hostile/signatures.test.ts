/** An independent program, openssl, verifies the signatures of a release without a network. */
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ImageLayout } from '../../build/image/layout.ts';
import { envelope, provenance, signatureOf, signImage, signingKey } from '../../build/sign.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const work = tempFolder();

/** A key of its own for each run, as openssl makes it. */
function keyPair(name: string): { readonly pem: string; readonly publicFile: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const publicFile = join(work, `${name}.pub`);
  writeFileSync(publicFile, publicKey.export({ type: 'spki', format: 'pem' }));
  return { pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), publicFile };
}
const ours = keyPair('ours');
const another = keyPair('another');
const key = signingKey(ours.pem);

const STATEMENT = provenance({
  version: '1.0.0',
  commit: 'c0ffee',
  builder: 'https://ci.example.com/release',
  subjects: [{ name: 'pullwright-1.0.0-linux-x64', sha256: 'ab'.repeat(32) }],
  materials: [{ name: 'package-lock.json', sha256: 'cd'.repeat(32) }],
});

/** Whether openssl accepts the signature. */
async function opensslTakes(publicFile: string, signature: string, content: Uint8Array): Promise<boolean> {
  const [signed, bytes] = [join(work, 'signature'), join(work, 'content')];
  writeFileSync(signed, Buffer.from(signature, 'base64'));
  writeFileSync(bytes, content);
  const ran = await runProcess([
    'openssl',
    'dgst',
    '-sha256',
    '-verify',
    publicFile,
    '-signature',
    signed,
    bytes,
  ]);
  assert.match(ran.stdout, /^Verified OK$|^Verification failure$/m, ran.stderr);
  return ran.code === 0;
}

test('a file: openssl takes it, and neither another file nor another key', async () => {
  const sums = Buffer.from('ab12  pullwright-1.0.0-linux-x64\n');
  const signature = signatureOf(key, sums);
  assert.equal(await opensslTakes(ours.publicFile, signature, sums), true);
  assert.equal(await opensslTakes(ours.publicFile, signature, Buffer.from('ab13  pullwright\n')), false);
  assert.equal(await opensslTakes(another.publicFile, signature, sums), false);
});

test('provenance: its envelope is what DSSE says, and its statement what in-toto and SLSA say', async () => {
  const { payload, payloadType, signatures } = JSON.parse(envelope(key, STATEMENT)) as {
    payload: string;
    payloadType: string;
    signatures: { sig: string }[];
  };
  // Put together here by the words of the specification, not by the product's function.
  const body = Buffer.from(payload, 'base64').toString('utf8');
  const signed = Buffer.from(
    ['DSSEv1', payloadType.length, payloadType, Buffer.byteLength(body), body].join(' '),
  );
  assert.equal(await opensslTakes(ours.publicFile, signatures[0]?.sig ?? '', signed), true);
  const changed = Buffer.from(signed.toString().replace('c0ffee', 'c0ffef'));
  assert.equal(await opensslTakes(ours.publicFile, signatures[0]?.sig ?? '', changed), false);
  assert.equal(payloadType, 'application/vnd.in-toto+json');
  const statement = JSON.parse(body) as typeof STATEMENT;
  assert.equal(statement._type, 'https://in-toto.io/Statement/v1');
  assert.equal(statement.predicateType, 'https://slsa.dev/provenance/v1');
  assert.deepEqual(statement.subject, [
    { name: 'pullwright-1.0.0-linux-x64', digest: { sha256: 'ab'.repeat(32) } },
  ]);
  const { buildDefinition, runDetails } = statement.predicate;
  assert.equal(runDetails.builder.id, 'https://ci.example.com/release');
  assert.equal(buildDefinition.resolvedDependencies.length, 2);
});

for (const [what, pem] of [
  ['no key', 'hello'],
  ['a public key', readFileSync(ours.publicFile, 'utf8')],
  [
    'RSA',
    generateKeyPairSync('rsa', { modulusLength: 2048 })
      .privateKey.export({ type: 'pkcs8', format: 'pem' })
      .toString(),
  ],
  [
    'another curve',
    generateKeyPairSync('ec', { namedCurve: 'P-384' })
      .privateKey.export({ type: 'pkcs8', format: 'pem' })
      .toString(),
  ],
] as const)
  test(`${what} does not sign`, () => {
    assert.throws(
      () => signingKey(pem),
      (error: Error & { code?: string }) => error.code === 'SigningKey' && !error.message.includes('BEGIN'),
    );
  });

test('an image: index and platforms are signed where cosign and nodes look, for the name that nodes pull', async () => {
  const image = new ImageLayout(join(work, 'image'));
  const platforms = ['amd64', 'arm64'].map((arch) => image.image(arch, [Buffer.alloc(1024)], { User: '1' }));
  const index = image.finish('1.0.0', platforms, {});
  const digests = [index, ...platforms].map(({ digest }) => digest);
  const attestation = envelope(key, STATEMENT);
  const repository = 'registry.example.com/pullwright/pullwright';
  const folder = join(work, 'signatures');
  signImage(key, { repository, digests, attestation }, folder);
  const { manifests } = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8')) as {
    manifests: { digest: string; annotations: Record<string, string> }[];
  };
  const stored = new Map(
    manifests.map(({ digest, annotations }) => [annotations['org.opencontainers.image.ref.name'], digest]),
  );
  assert.equal(stored.size, 6);
  for (const digest of digests) {
    const tag = digest.replace(':', '-');
    const signature = carried(folder, stored.get(`${tag}.sig`) ?? '');
    const { critical } = JSON.parse(signature.content.toString()) as { critical: object };
    assert.deepEqual(critical, {
      identity: { 'docker-reference': repository },
      image: { 'docker-manifest-digest': digest },
      type: 'cosign container image signature',
    });
    const signed = signature.annotations['dev.cosignproject.cosign/signature'] ?? '';
    assert.equal(await opensslTakes(ours.publicFile, signed, signature.content), true);
    assert.equal(await opensslTakes(another.publicFile, signed, signature.content), false);
    assert.equal(carried(folder, stored.get(`${tag}.att`) ?? '').content.toString(), attestation);
  }
});

/** The blob of a manifest, whose digest and size are what is said of it. */
function carried(
  folder: string,
  digest: string,
): { readonly content: Buffer; readonly annotations: Readonly<Record<string, string>> } {
  const blob = (of: string): Buffer => readFileSync(join(folder, 'blobs', of.replace(':', '/')));
  const { layers } = JSON.parse(blob(digest).toString()) as {
    layers: [{ digest: string; size: number; annotations: Record<string, string> }];
  };
  const [{ digest: layer, size, annotations }] = layers;
  const content = blob(layer);
  assert.equal(`sha256:${createHash('sha256').update(content).digest('hex')}`, layer);
  assert.equal(content.length, size);
  return { content, annotations };
}
