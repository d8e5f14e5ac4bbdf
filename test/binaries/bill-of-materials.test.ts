// deadline: 300 s
/** The bill of materials lists what is in an image, each part with its checksum and its place, and nothing else. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundledModules } from '../../build/compile.ts';
import { basePins } from '../../build/image/debian.ts';
import { billOfMaterials, packagePath } from '../../build/sbom.ts';
import { VERSION } from '../../runtime/core/version.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = join(import.meta.dirname, '../..');
const work = tempFolder();

interface Billed {
  readonly SPDXID: string;
  readonly name?: string;
  readonly versionInfo?: string;
  readonly checksums?: readonly { readonly algorithm: string; readonly checksumValue: string }[];
}
interface Bill {
  readonly packages: readonly Billed[];
  readonly files: readonly Billed[];
  readonly relationships: readonly { readonly spdxElementId: string; readonly relatedSpdxElement: string }[];
}

const executables = { x64: join(work, 'x64'), arm64: join(work, 'arm64') };
for (const [arch, path] of Object.entries(executables)) writeFileSync(path, `executable ${arch}`);
const bill = JSON.parse(Buffer.from(billOfMaterials(executables)).toString()) as Bill;

const sumsOf = ({ checksums = [] }: Billed): readonly string[] =>
  checksums.map(({ algorithm, checksumValue }) => `${algorithm} ${checksumValue}`);

/** Each part that the image holds, with the checksum that is known of it before the image is built. */
function expected(): Set<string> {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<
      Record<string, { readonly name?: string; readonly version: string; readonly integrity?: string }>
    >;
  };
  const bundled = bundledModules().flatMap((module) => packagePath(module) ?? []);
  const runtimes = ['node_modules/@oven/bun-linux-x64', 'node_modules/@oven/bun-linux-aarch64'];
  const parts = [
    `pullwright@${VERSION} `,
    ...[...bundled, ...runtimes].map((path) => {
      const {
        name = path.slice(path.lastIndexOf('node_modules/') + 13),
        version,
        integrity,
      } = lock.packages[path] ?? { version: 'none' };
      const [, base64] = integrity?.split('sha512-') ?? [];
      const sum = base64 === undefined ? '' : `SHA512 ${Buffer.from(base64, 'base64').toString('hex')}`;
      return `${name}@${version} ${sum}`;
    }),
    ...basePins().packages.map(({ name, version, sha256 }) => `${name}@${version} SHA256 ${sha256}`),
  ];
  // A copy inside of another package's archive has no checksum of its own.
  return new Set(
    parts.filter((part) => !part.endsWith(' ') || !parts.some((one) => one !== part && one.startsWith(part))),
  );
}

test('has every package of the executables and of the base with its checksum, and no other', () => {
  const listed = bill.packages.flatMap((one) => {
    const sums = one.name === 'pullwright' ? [''] : sumsOf(one);
    return (sums.length === 0 ? [''] : sums).map((sum) => `${one.name}@${one.versionInfo} ${sum}`);
  });
  assert.deepEqual([...new Set(listed).symmetricDifference(expected())], []);
});

test('has the executables by their checksum', () => {
  const sums = bill.files.flatMap(sumsOf).filter((sum) => sum.startsWith('SHA256 '));
  const real = Object.values(executables).map(
    (path) => `SHA256 ${createHash('sha256').update(readFileSync(path)).digest('hex')}`,
  );
  assert.deepEqual(sums.sort(), real.sort());
});

test('says of every part where it belongs', () => {
  const placed = new Set(
    bill.relationships.flatMap(({ spdxElementId, relatedSpdxElement }) => [
      spdxElementId,
      relatedSpdxElement,
    ]),
  );
  for (const { SPDXID } of [...bill.packages, ...bill.files]) assert.ok(placed.has(SPDXID), SPDXID);
});
