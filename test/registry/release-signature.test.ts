// deadline: 240 s
/** Signatures of a release, made by gpg. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { signedMessage, signingKeys } from '../../runtime/registry/openpgp.ts';
import { suite, table } from '../support/suite.ts';
import { missingTool, push, scratch, startRegistry } from './docker-registry.ts';
import { cli, clusterFolder, releaseLayout, SOURCE } from './release-scene.ts';

const test = suite('signatures of a release');
const folder = scratch();

interface Signer {
  readonly home: string;
  readonly key: string;
}

function signer(name: string): Signer {
  const home = join(folder, `gpg-${name}`);
  mkdirSync(home, { mode: 0o700 });
  const gpg = (...args: readonly string[]): Buffer =>
    execFileSync(
      'gpg',
      ['--homedir', home, '--batch', '--pinentry-mode', 'loopback', '--passphrase', '', ...args],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
  gpg('--quick-gen-key', `${name}@example.com`, 'rsa2048', 'sign', 'never');
  const key = join(folder, `${name}.asc`);
  writeFileSync(key, gpg('--armor', '--export'));
  return { home, key };
}

function sign({ home }: Signer, digest: string, ...options: readonly string[]): string {
  const content = {
    critical: {
      type: 'atomic container signature',
      image: { 'docker-manifest-digest': digest },
      identity: { 'docker-reference': SOURCE },
    },
    optional: {},
  };
  const file = join(folder, 'to-sign');
  const out = join(folder, `signature-${Math.random()}`);
  writeFileSync(file, JSON.stringify(content));
  execFileSync(
    'gpg',
    [
      '--homedir',
      home,
      '--batch',
      '--pinentry-mode',
      'loopback',
      '--passphrase',
      '',
      ...options,
      '--sign',
      '--output',
      out,
      file,
    ],
    { stdio: 'pipe' },
  );
  return out;
}

const missing = missingTool() ?? (existsSync('/usr/bin/gpg') ? undefined : 'gpg');
if (missing !== undefined) test.skip('signatures', `${missing} is not installed`);
else {
  const full = await startRegistry(folder, 'full');
  test.lastly('registry and keys are stopped', () => {
    full.stop();
    for (const name of ['good', 'other'])
      execFileSync('gpgconf', ['--homedir', join(folder, `gpg-${name}`), '--kill', 'gpg-agent']);
    rmSync(folder, { recursive: true, force: true });
  });
  const release = releaseLayout(folder, '4.22.3', {});
  const newer = releaseLayout(folder, '4.22.4', {});
  push(release, full, 'm/release:4.22.3', folder);
  const from = clusterFolder(folder, [`${full.host}/m`], full);
  const reach = [
    '--from',
    from,
    '--cluster',
    'clusters/prod',
    '--plain-host',
    full.host,
    '--allow-host',
    full.host,
  ];
  const image = `${SOURCE}/release:4.22.3`;

  const good = signer('good');
  const other = signer('other');
  const valid = sign(good, release.digest);
  const configMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: 'signatures',
      namespace: 'openshift-config-managed',
      labels: { 'release.openshift.io/verification-signatures': '' },
    },
    binaryData: {
      [`${release.digest.replace(':', '-')}-1`]: execFileSync('base64', ['-w0', valid], { encoding: 'utf8' }),
    },
  };
  const signed = join(folder, 'signature-configmap.json');
  writeFileSync(signed, JSON.stringify(configMap));
  table(
    test,
    [
      {
        name: 'a signature in the ConfigMap of oc-mirror',
        reason: 'packed, as gpg writes by default',
        args: ['--from', signed, '--signature-key', good.key],
        code: 0,
        says: /^signature {5}Verified: by key [0-9A-F]{16} \(ConfigMap\/openshift-config-managed\/signatures sha256-/m,
      },
      {
        name: 'a signature of a store',
        reason: 'a file, and not packed',
        args: [
          '--signature',
          sign(good, release.digest, '--compress-algo', 'none'),
          '--signature-key',
          good.key,
        ],
        code: 0,
        says: /Verified: by key/,
      },
      {
        name: 'zlib and SHA-512',
        reason: 'other keys have other preferences',
        args: [
          '--signature',
          sign(good, release.digest, '--compress-algo', 'zlib', '--digest-algo', 'SHA512'),
          '--signature-key',
          good.key,
        ],
        code: 0,
        says: /Verified: by key/,
      },
      {
        name: 'another key',
        reason: 'anybody can sign',
        args: ['--signature', valid, '--signature-key', other.key],
        code: 1,
        says: /Rejected: .* is not signed by a given key/,
      },
      {
        name: 'another image',
        reason: 'a good signature of an older release',
        args: ['--signature', sign(good, newer.digest), '--signature-key', good.key],
        code: 1,
        says: /Rejected: .* signs another image/,
      },
      {
        name: 'no key',
        reason: 'nothing is concluded',
        args: ['--signature', valid],
        code: 0,
        says: /Unknown: a signature is there, and no key to check it with: give --signature-key/,
      },
      {
        name: 'no signature',
        reason: 'nothing is concluded',
        args: ['--signature-key', good.key],
        code: 0,
        says: /Unknown: no signature for sha256:/,
      },
      {
        name: 'something else as signature',
        reason: 'a page of an error',
        args: ['--signature', signed, '--signature-key', good.key],
        code: 1,
        says: /Rejected: .* is no signature: it is no OpenPGP data/,
      },
      {
        name: 'something else as key',
        reason: 'a private file by mistake',
        args: ['--signature-key', signed],
        code: 2,
        says: /Cannot read ".*": it is no OpenPGP data, expected a public key of OpenPGP/,
      },
    ],
    async ({ args, code, says }) => {
      const ran = await cli(image, ...reach, ...args);
      assert.equal(ran.code, code, ran.stdout + ran.stderr);
      assert.match(ran.stdout + ran.stderr, says);
    },
  );

  test('a signature that was tampered with in any byte of its content is refused', () => {
    const [key] = signingKeys(readFileSync(good.key));
    const bytes = readFileSync(sign(good, release.digest, '--compress-algo', 'none'));
    assert.ok(key !== undefined && signedMessage(bytes).verify(key.key));
    const at = bytes.indexOf('docker-manifest-digest');
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.equal(signedMessage(changed).verify(key.key), false);
  });
}

test.run();
