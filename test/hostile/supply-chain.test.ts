// deadline: 300 s
/**
 * Builds use only reviewed inputs: every package by version and checksum, a bill of materials, and
 * signatures that independent programs verify without a network.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { bundledModules } from '../../build/compile.ts';
import {
  basePins,
  type PackageSources,
  type PinnedPackage,
  packagesOf,
  pinnedPackage,
} from '../../build/image/debian.ts';
import { packagePath } from '../../build/sbom.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = join(import.meta.dirname, '../..');
const work = tempFolder();

test('every package of the base has a version and a checksum, for both architectures', () => {
  const pins = basePins();
  assert.match(pins.snapshot, /^\d{8}T000000Z$/);
  for (const pin of pins.packages) assert.match(pin.sha256, /^[\da-f]{64}$/, pin.name);
  for (const arch of ['amd64', 'arm64'] as const)
    assert.deepEqual(
      packagesOf(pins, arch)
        .map(({ name }) => name)
        .sort(),
      ['ca-certificates', 'libc6'],
    );
});

const GOOD = Buffer.from('a package');
const pin: PinnedPackage = {
  name: 'libx',
  version: '1.0-1',
  architecture: 'amd64',
  archive: 'debian',
  path: 'pool/main/libx/libx_1.0-1_amd64.deb',
  size: GOOD.length,
  sha256: createHash('sha256').update(GOOD).digest('hex'),
};

/** A mirror in a folder of its own, and an empty cache. */
function mirror(name: string, content?: Uint8Array): PackageSources & { readonly kept: string } {
  const folder = join(work, name, 'debian/pool/main/libx');
  mkdirSync(folder, { recursive: true });
  if (content !== undefined) writeFileSync(join(folder, 'libx_1.0-1_amd64.deb'), content);
  const cache = join(work, `${name}-cache`);
  return { mirrors: [`file://${join(work, name)}`], cache, kept: join(cache, `${pin.sha256}.deb`) };
}

if ((await runProcess(['test', '-x', '/usr/lib/apt/apt-helper'])).code !== 0)
  test.skip('of packages of the base', 'this machine has no apt');
else {
  test('a package is taken when it is the pinned one, and kept under its checksum', () => {
    const sources = mirror('good', GOOD);
    assert.equal(pinnedPackage(pin, '', sources), sources.kept);
    assert.deepEqual(readFileSync(sources.kept), GOOD);
    // A stored package needs no mirror.
    assert.equal(pinnedPackage(pin, '', { ...sources, mirrors: [] }), sources.kept);
  });

  test('other bytes are refused, and not kept', () => {
    const sources = mirror('changed', Buffer.from('another package'));
    assert.throws(() => pinnedPackage(pin, '', sources), {
      code: 'BaseChecksum',
      message: /libx.*1\.0-1.*wants/,
    });
    assert.throws(() => readFileSync(sources.kept), { code: 'ENOENT' });
  });

  test('what was changed in the cache is fetched again', () => {
    const sources = mirror('cache', GOOD);
    mkdirSync(sources.cache, { recursive: true });
    writeFileSync(sources.kept, 'changed');
    assert.deepEqual(readFileSync(pinnedPackage(pin, '', sources)), GOOD);
  });

  test('a version that a mirror has dropped is asked of the next one', () => {
    const [gone, old] = [mirror('gone'), mirror('old', GOOD)];
    const sources = { cache: gone.cache, mirrors: [...gone.mirrors, ...old.mirrors] };
    assert.equal(pinnedPackage(pin, '', sources), gone.kept);
  });
}

/** Modules that another bundler includes and ours does not: the runtime has its own, or the module only re-exports another. */
const NOT_TAKEN: readonly string[] = [
  'undici',
  'ws',
  'jose',
  'isomorphic-ws',
  'node-fetch',
  'data-uri-to-buffer',
  'fetch-blob',
  'formdata-polyfill',
  'node-domexception',
  'web-streams-polyfill',
  'events-universal',
  'pause-stream',
];

test('the bill lists the packages whose modules are in the executable: another bundler finds the same', async () => {
  const { metafile } = await build({
    entryPoints: [join(root, 'runtime/commands/executable.ts')],
    absWorkingDir: root,
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    splitting: true,
    outdir: join(work, 'bundle'),
    external: ['x11', 'usocket', 'bun', 'bun:*'],
    logLevel: 'silent',
  });
  const found = new Set(Object.keys(metafile.inputs).flatMap((module) => packagePath(module) ?? []));
  const nameOf = (path: string): string => path.slice(path.lastIndexOf('node_modules/') + 13);
  const names = [...found].filter((path) => !NOT_TAKEN.includes(nameOf(path)));
  assert.ok(names.length > 50);
  const billed = new Set(bundledModules().flatMap((module) => packagePath(module) ?? []));
  assert.deepEqual([...billed].sort(), names.sort());
});
