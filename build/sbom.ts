/**
 * The bill of materials of the image: the packages whose modules are in the executable, the runtime that it is built on, the packages
 * of the base, and the executables themselves.
 *
 * npm writes what it knows of each package from the lock file; which of them are in the executable the bundler says.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '../runtime/rules/version.ts';
import type { Arch } from './base.ts';
import { bundledModules } from './compile.ts';
import { basePins, type PinnedPackage, packageAddresses } from './image/debian.ts';
import { runTool } from './run-tool.ts';

/** Runtimes that executables are built on: optional to npm, part of each executable. */
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
  readonly relationships: readonly Relationship[];
  readonly [field: string]: unknown;
}

interface Relationship {
  readonly spdxElementId: string;
  readonly relatedSpdxElement: string;
  readonly relationshipType: string;
}

interface Lock {
  readonly name: string;
  readonly packages: Readonly<
    Record<string, { readonly name?: string; readonly version?: string } | undefined>
  >;
}

/**
 * SPDX 2.3 without anything that differs between two runs.
 *
 * @param root folder of `package-lock.json`
 * @param executables paths of the executables that are shipped
 */
export function billOfMaterials(root: string, executables: Readonly<Record<Arch, string>>): Uint8Array {
  const document = JSON.parse(
    runTool(['npm', 'sbom', '--sbom-format', 'spdx', '--package-lock-only'], root),
  ) as Spdx;
  const lock = readLock(root);
  const shipped = new Set(npmPackages(root, lock));
  const fromNpm = document.packages.filter(
    ({ name, versionInfo }) => name === lock.name || shipped.has(`${name}@${versionInfo ?? ''}`),
  );
  const { packages: pins, snapshot } = basePins();
  const base = pins.map((pin) => basePackage(pin, snapshot));
  const files = (Object.entries(executables) as [Arch, string][]).map(executableFile);
  const kept = new Set([...fromNpm.map(({ SPDXID }) => SPDXID), 'SPDXRef-DOCUMENT']);
  const relationships: readonly Relationship[] = [
    ...document.relationships.filter(
      ({ spdxElementId, relatedSpdxElement }) => kept.has(spdxElementId) && kept.has(relatedSpdxElement),
    ),
    ...[...base, ...files].map(({ SPDXID }) => ({
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

/** What an image holds, as `name@version`: what its bill must list, and nothing else. */
export function imageParts(root: string): readonly string[] {
  return [
    ...npmPackages(root, readLock(root)),
    ...basePins().packages.map(({ name, version }) => `${name}@${version}`),
  ];
}

function readLock(root: string): Lock {
  return JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock;
}

/** Packages with a module in the executable, and the runtimes, as the lock file has them. */
function npmPackages(root: string, lock: Lock): readonly string[] {
  const paths = new Set(bundledModules(root).flatMap((module) => packagePath(module) ?? []));
  return [...paths, ...RUNTIMES.map((name) => `node_modules/${name}`)].map((path) => {
    const entry = lock.packages[path];
    return `${entry?.name ?? path.slice(path.lastIndexOf('node_modules/') + 13)}@${entry?.version ?? 'not in the lock file'}`;
  });
}

/**
 * Folder of the package that a module belongs to; undefined for the product's own.
 *
 * @example
 * ```ts
 * import { packagePath } from './sbom.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(packagePath('node_modules/a/node_modules/@b/c/lib/d.js'), 'node_modules/a/node_modules/@b/c');
 * assert.equal(packagePath('runtime/main.ts'), undefined);
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
        referenceLocator: `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}`,
      },
    ],
    checksums: [{ algorithm: 'SHA256', checksumValue: sha256 }],
  };
}

function executableFile([arch, path]: readonly [Arch, string]): { readonly SPDXID: string } {
  const bytes = readFileSync(path);
  const sum = (algorithm: string): string => createHash(algorithm).update(bytes).digest('hex');
  const file = {
    SPDXID: `SPDXRef-File-pullwright-linux-${arch}`,
    fileName: './usr/bin/pullwright',
    comment: `linux-${arch}`,
    // The format wants SHA-1 in any case.
    checksums: [
      { algorithm: 'SHA1', checksumValue: sum('sha1') },
      { algorithm: 'SHA256', checksumValue: sum('sha256') },
    ],
  };
  return file;
}

interface Bill {
  readonly packages?: readonly { readonly name?: string; readonly versionInfo?: string }[];
}

/**
 * How a bill differs from what an image holds: packages that one of them lacks, as `name@version`.
 *
 * @example
 * ```ts
 * import { billDifferences } from './sbom.ts';
 * import assert from 'node:assert/strict';
 *
 * const bill = { packages: [{ name: 'pullwright' }, { name: 'zod', versionInfo: '4.6.6' }] };
 * assert.deepEqual(billDifferences(bill, ['zod@4.6.7'], 'pullwright'), ['not in the bill: zod@4.6.7', 'not in the image: zod@4.6.6']);
 * ```
 */
export function billDifferences(bill: Bill, parts: readonly string[], own: string): readonly string[] {
  const billed = (bill.packages ?? [])
    .filter(({ name }) => name !== own)
    .map(({ name, versionInfo }) => `${name ?? ''}@${versionInfo ?? ''}`);
  const [billedSet, held] = [new Set(billed), new Set(parts)];
  return [
    ...new Set([
      ...parts.filter((one) => !billedSet.has(one)).map((one) => `not in the bill: ${one}`),
      ...billed.filter((one) => !held.has(one)).map((one) => `not in the image: ${one}`),
    ]),
  ];
}
