/**
 * The software bill of materials of the image: the packages whose modules are in the executable, the Bun runtime, the packages of
 * the base image, and the executables.
 *
 * npm describes every package of the lock file; the bundler reports which of them are in the executable.
 */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { VERSION } from '../runtime/core/version.ts';
import { type Arch, readLock } from './base.ts';
import { bundledModules } from './compile.ts';
import { basePins, type PinnedPackage, packageAddresses, packageUrl } from './image/debian.ts';
import { ROOT, runTool } from './run-tool.ts';

/** Runtimes of the executables: optional dependencies for npm, but part of each executable. */
const RUNTIMES: readonly string[] = ['@oven/bun-linux-x64', '@oven/bun-linux-aarch64'];
const PROGRAM = `SPDXRef-Package-pullwright-${VERSION}`;

interface SpdxPackage {
  readonly SPDXID: string;
  readonly name: string;
  readonly versionInfo?: string;
  readonly [field: string]: unknown;
}

interface Spdx {
  readonly packages: readonly SpdxPackage[];
  readonly relationships: readonly { readonly spdxElementId: string; readonly relatedSpdxElement: string }[];
  readonly [field: string]: unknown;
}

/**
 * Returns an SPDX 2.3 document that is the same in every run.
 *
 * @param executables paths of the executables that are shipped
 */
export function billOfMaterials(executables: Readonly<Record<Arch, string>>): Uint8Array {
  const document = JSON.parse(
    runTool(['npm', 'sbom', '--sbom-format', 'spdx', '--package-lock-only'], ROOT),
  ) as Spdx;
  const lock = readLock();
  const shipped = shippedPackages(lock);
  const fromNpm = document.packages.flatMap((one) => {
    const key = `${one.name}@${one.versionInfo ?? ''}`;
    if (!shipped.has(key)) return one.name === lock.name ? [one] : [];
    const integrity = shipped.get(key);
    return [integrity === undefined ? one : { ...one, checksums: [sumOf(integrity)] }];
  });
  const { packages: pins, snapshot } = basePins();
  const base = pins.map((pin) => basePackage(pin, snapshot));
  const files = Object.entries(executables).map(executableFile);
  const kept = new Set([...fromNpm.map(({ SPDXID }) => SPDXID), 'SPDXRef-DOCUMENT']);
  const between = document.relationships.filter(
    ({ spdxElementId, relatedSpdxElement }) => kept.has(spdxElementId) && kept.has(relatedSpdxElement),
  );
  const placed = new Set([PROGRAM, ...between.map(({ spdxElementId }) => spdxElementId)]);
  // The package that depends on it may not be shipped, so the program contains it directly.
  const unplaced = fromNpm.filter(({ SPDXID }) => !placed.has(SPDXID));
  const relationships = [
    ...between,
    ...[...unplaced, ...base, ...files].map(({ SPDXID }) => ({
      spdxElementId: PROGRAM,
      relatedSpdxElement: SPDXID,
      relationshipType: 'CONTAINS',
    })),
  ];
  const creationInfo = { ...(document['creationInfo'] as object), created: '1970-01-01T00:00:00Z' };
  const documentNamespace = `https://pullwright.dev/spdx/pullwright-${VERSION}`;
  const packages = [...fromNpm, ...base];
  return Buffer.from(
    JSON.stringify({ ...document, packages, files, relationships, creationInfo, documentNamespace }),
  );
}

/**
 * Shipped packages (`zod@4.6.7`) with their checksum in the lock file: those with a module in the executable, and the runtimes. A
 * copy inside another package's archive has no checksum, so another copy's is used.
 */
function shippedPackages({ packages }: ReturnType<typeof readLock>) {
  const found = new Map<string, string | undefined>();
  const bundled = bundledModules().flatMap((module) => packagePath(module) ?? []);
  for (const path of [...bundled, ...RUNTIMES.map((name) => `node_modules/${name}`)]) {
    const { name, version, integrity } = packages[path] ?? { version: 'not in the lock file' };
    const key = `${name ?? path.slice(path.lastIndexOf('node_modules/') + 13)}@${version}`;
    found.set(key, integrity ?? found.get(key));
  }
  return found;
}

/** Converts npm's `sha512-<base64>` to a checksum of SPDX. */
function sumOf(integrity: string) {
  const [algorithm = '', base64 = ''] = integrity.split(/-(.*)/s);
  return {
    algorithm: algorithm.toUpperCase(),
    checksumValue: Buffer.from(base64, 'base64').toString('hex'),
  };
}

/**
 * Returns the folder of the package that contains a module; undefined for a module of the repository.
 *
 * @example
 * ```ts
 * import { packagePath } from './sbom.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(packagePath('node_modules/a/node_modules/@b/c/lib/d.js'), 'node_modules/a/node_modules/@b/c');
 * assert.equal(packagePath('runtime/commands/main.ts'), undefined);
 * ```
 */
export function packagePath(module: string): string | undefined {
  const at = module.lastIndexOf('node_modules/');
  if (at < 0) return undefined;
  const [first = '', second = ''] = module.slice(at + 13).split('/');
  return `${module.slice(0, at + 13)}${first.startsWith('@') ? `${first}/${second}` : first}`;
}

function basePackage(pin: PinnedPackage, snapshot: string): SpdxPackage {
  const { name, version, architecture, sha256 } = pin;
  return {
    name,
    SPDXID: `SPDXRef-Base-${name}-${architecture}`,
    versionInfo: version,
    packageFileName: pin.path.slice(pin.path.lastIndexOf('/') + 1),
    supplier: 'Organization: Debian',
    downloadLocation: packageAddresses(pin, snapshot, [])[0],
    filesAnalyzed: false,
    licenseDeclared: 'NOASSERTION',
    externalRefs: [
      {
        referenceCategory: 'PACKAGE-MANAGER',
        referenceType: 'purl',
        referenceLocator: packageUrl(pin),
      },
    ],
    checksums: [{ algorithm: 'SHA256', checksumValue: sha256 }],
  };
}

function executableFile([arch, path]: readonly [string, string]) {
  const bytes = readFileSync(path);
  return {
    SPDXID: `SPDXRef-File-pullwright-linux-${arch}`,
    fileName: './usr/bin/pullwright',
    comment: `linux-${arch}`,
    // SPDX requires SHA-1.
    checksums: [
      { algorithm: 'SHA1', checksumValue: hash('sha1', bytes) },
      { algorithm: 'SHA256', checksumValue: hash('sha256', bytes) },
    ],
  };
}
