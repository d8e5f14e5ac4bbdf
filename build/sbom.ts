/**
 * The bill of materials: what the program is made of, by the lock file.
 *
 * `npm sbom --omit dev` leaves out packages that the program shares with a development tool, so npm writes the whole bill, and
 * what the lock file marks as development only is taken out.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '../runtime/rules/version.ts';
import { runTool } from './run-tool.ts';

interface Spdx {
  readonly packages: readonly {
    readonly SPDXID: string;
    readonly name: string;
    readonly versionInfo?: string;
  }[];
  readonly relationships: readonly { readonly spdxElementId: string; readonly relatedSpdxElement: string }[];
  readonly [field: string]: unknown;
}

/**
 * SPDX as npm writes it from the lock file of `root`, without the parts that differ between two runs. What only this repository
 * needs is taken out by the lock file: npm's own `--omit dev` also leaves out what the program shares with a tool.
 */
export function billOfMaterials(root: string): Uint8Array {
  const document = JSON.parse(
    runTool(['npm', 'sbom', '--sbom-format', 'spdx', '--package-lock-only'], root),
  ) as Spdx;
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock & {
    readonly name: string;
  };
  const shipped = new Set(
    lockedPackages(lock)
      .filter(({ entry }) => isShipped(entry))
      .map(({ id }) => id),
  );
  const packages = document.packages.filter(
    ({ name, versionInfo }) => name === lock.name || shipped.has(`${name}@${versionInfo ?? ''}`),
  );
  const kept = new Set([...packages.map(({ SPDXID }) => SPDXID), 'SPDXRef-DOCUMENT']);
  const relationships = document.relationships.filter(
    ({ spdxElementId, relatedSpdxElement }) => kept.has(spdxElementId) && kept.has(relatedSpdxElement),
  );
  const creationInfo = { ...(document['creationInfo'] as object), created: '1970-01-01T00:00:00Z' };
  const documentNamespace = `https://pullwright.dev/spdx/pullwright-${VERSION}`;
  return Buffer.from(
    JSON.stringify({ ...document, packages, relationships, creationInfo, documentNamespace }),
  );
}

interface Bill {
  readonly packages?: readonly { readonly name?: string; readonly versionInfo?: string }[];
}

interface LockEntry {
  /** Of a package that is installed under another name. */
  readonly name?: string;
  readonly version?: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly optional?: boolean;
}

interface Lock {
  readonly packages: Readonly<Record<string, LockEntry>>;
}

function lockedPackages(lock: Lock): readonly { readonly id: string; readonly entry: LockEntry }[] {
  return Object.entries(lock.packages)
    .filter(([path]) => path !== '')
    .map(([path, entry]) => ({
      id: `${entry.name ?? path.slice(path.lastIndexOf('node_modules/') + 13)}@${entry.version ?? ''}`,
      entry,
    }));
}

/** The runtimes are optional and part of the executable. */
function isShipped({ dev, devOptional }: LockEntry): boolean {
  return dev !== true && devOptional !== true;
}

/**
 * How a bill differs from a lock file: packages that one of them lacks, as `name@version`. Packages for other platforms may be
 * missing from the bill; tools must be.
 *
 * @example
 * ```ts
 * import { billDifferences } from './sbom.ts';
 * import assert from 'node:assert/strict';
 *
 * const lock = { packages: { 'node_modules/zod': { version: '4.6.7' }, 'node_modules/uvu': { version: '0.5.6', dev: true } } };
 * const bill = { packages: [{ name: 'zod', versionInfo: '4.6.6' }] };
 * assert.deepEqual(billDifferences(bill, lock, 'pullwright'), ['not in the bill: zod@4.6.7', 'not in the lock file: zod@4.6.6']);
 * ```
 */
export function billDifferences(bill: Bill, lock: Lock, own: string): readonly string[] {
  const locked = lockedPackages(lock);
  const wanted = locked
    .filter(({ entry }) => isShipped(entry) && entry.optional !== true)
    .map(({ id }) => id);
  const known = new Set(locked.filter(({ entry }) => isShipped(entry)).map(({ id }) => id));
  const billed = (bill.packages ?? [])
    .filter(({ name }) => name !== own)
    .map(({ name, versionInfo }) => `${name ?? ''}@${versionInfo ?? ''}`);
  const billedSet = new Set(billed);
  return [
    ...new Set([
      ...wanted.filter((one) => !billedSet.has(one)).map((one) => `not in the bill: ${one}`),
      ...billed.filter((one) => !known.has(one)).map((one) => `not in the lock file: ${one}`),
    ]),
  ];
}
