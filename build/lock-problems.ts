/** Whether npm installs exactly the reviewed packages. Pure. */
import { recordOf, textOf } from '../runtime/core/record.ts';

const INTEGRITY = /^sha512-[\w+/]{86}==$/;

/**
 * One sentence for each package of a lock file that could be another one tomorrow: without a checksum of its own or of the archive that it
 * comes in, with a weaker one, from an address of its own, or a folder that is linked. None when all are pinned.
 *
 * @param lock a parsed `package-lock.json`
 *
 * @example
 * ```ts
 * import { lockProblems } from './lock-problems.ts';
 * import assert from 'node:assert/strict';
 *
 * const integrity = `sha512-${'a'.repeat(86)}==`;
 * const locked = { version: '1.0.0', integrity };
 * assert.deepEqual(lockProblems({ lockfileVersion: 3, packages: { 'node_modules/a': locked } }), []);
 * assert.match(lockProblems({ lockfileVersion: 3, packages: { 'node_modules/a': {} } })[0] ?? '', /node_modules\/a has no/);
 * ```
 */
export function lockProblems(lock: unknown): readonly string[] {
  const { lockfileVersion, packages } = recordOf(lock);
  const entries = recordOf(packages);
  const names = Object.keys(entries).filter((path) => path !== '');
  if (lockfileVersion !== 3 || names.length === 0)
    return ['package-lock.json holds no packages of lockfileVersion 3: make it again with npm install'];
  return names.flatMap((path) => problemOf(path, entries));
}

function problemOf(path: string, entries: Readonly<Record<string, unknown>>): readonly string[] {
  const { integrity, inBundle, link, resolved } = recordOf(entries[path]);
  const at = `package-lock.json: ${path}`;
  if (link === true) return [`${at} is a link to a folder: expected a package of the registry`];
  if (resolved !== undefined)
    return [`${at} has an address of its own: expected the registry, without address`];
  if (inBundle === true) {
    const above = path.lastIndexOf('/node_modules/');
    const archive = above > 0 ? recordOf(entries[path.slice(0, above)]) : {};
    if (archive['inBundle'] === true || INTEGRITY.test(textOf(archive['integrity']))) return [];
    return [`${at} is said to come in the archive of another package, which has no checksum`];
  }
  if (INTEGRITY.test(textOf(integrity))) return [];
  return [
    integrity === undefined
      ? `${at} has no checksum: expected integrity "sha512-..."`
      : `${at} has another checksum than sha512`,
  ];
}
