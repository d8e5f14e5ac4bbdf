/** A lock file that was changed to install a different package than the reviewed one is rejected. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lockProblems } from '../../build/release-problems.ts';
import { type Case, table, test } from '../support/suite.ts';

type Packages = Record<string, Record<string, unknown>>;
interface Row extends Case {
  readonly cheat: (packages: Packages) => void;
  readonly says: readonly RegExp[];
}

const text = readFileSync(join(import.meta.dirname, '../../package-lock.json'), 'utf8');
const ZOD = 'node_modules/zod';
const change = (packages: Packages, part: Record<string, unknown>): void => {
  packages[ZOD] = { ...packages[ZOD], ...part };
};

const rows: readonly Row[] = [
  { name: 'nothing', reason: 'as it is', cheat: () => undefined, says: [] },
  {
    name: 'no checksum',
    reason: 'whatever the registry gives would do',
    cheat: (packages) => {
      const { integrity: _, ...rest } = packages[ZOD] ?? {};
      packages[ZOD] = rest;
    },
    says: [/node_modules\/zod has no checksum: expected integrity "sha512-/],
  },
  {
    name: 'a weak checksum',
    reason: 'another archive with the same one can be made',
    cheat: (packages) => change(packages, { integrity: 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=' }),
    says: [/zod has another checksum than sha512/],
  },
  {
    name: 'a weak checksum beside a good one',
    reason: 'npm takes an archive that matches one of them',
    cheat: (packages) =>
      change(packages, {
        integrity: `${String(packages[ZOD]?.['integrity'])} sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=`,
      }),
    says: [/zod has another checksum than sha512/],
  },
  {
    name: 'a checksum that is cut short',
    reason: 'npm would not compare it',
    cheat: (packages) => change(packages, { integrity: String(packages[ZOD]?.['integrity']).slice(0, -10) }),
    says: [/zod has another checksum/],
  },
  {
    name: 'a place of its own',
    reason: 'with a checksum that fits what lies there',
    cheat: (packages) => change(packages, { resolved: 'https://packages.example.com/zod.tgz' }),
    says: [/zod has an address of its own/],
  },
  {
    name: 'a link',
    reason: 'a folder has no checksum',
    cheat: (packages) => {
      packages[ZOD] = { resolved: '../zod', link: true };
    },
    says: [/zod is a link to a folder/],
  },
  {
    name: 'one more package, said to be bundled',
    reason: 'what is bundled has the checksum of its archive, and there is none',
    cheat: (packages) => {
      packages['node_modules/evil'] = { version: '1.0.0', inBundle: true };
    },
    says: [/evil is said to come in the archive of another package, which has no checksum/],
  },
  {
    name: 'no packages',
    reason: 'nothing to compare is no answer',
    cheat: (packages) => {
      for (const name of Object.keys(packages)) delete packages[name];
    },
    says: [/holds no packages/],
  },
];

table(test, rows, ({ cheat, says }) => {
  const lock = JSON.parse(text) as { packages: Packages };
  cheat(lock.packages);
  const found = lockProblems(lock);
  assert.equal(found.length, says.length, found.join('; '));
  for (const [index, pattern] of says.entries()) assert.match(found[index] ?? '', pattern);
});

for (const lock of [null, [], 'x', { packages: { a: {} } }, { lockfileVersion: 1, packages: { a: {} } }])
  test(`no lock file at all: ${JSON.stringify(lock)}`, () => {
    assert.match(lockProblems(lock).join(), /lockfileVersion 3/);
  });
