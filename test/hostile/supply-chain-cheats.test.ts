// deadline: 300 s
/** A bill of materials that somebody changed is refused, with what is wrong in it: right names alone are not enough. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { billDifferences, billOfMaterials, imageParts } from '../../build/sbom.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('supply chain: cheats');
const root = join(import.meta.dirname, '../..');
const work = mkdtempSync(join(tmpdir(), 'pullwright-cheats-'));

function executables(content: string): { readonly x64: string; readonly arm64: string } {
  const paths = { x64: join(work, `${content}-x64`), arm64: join(work, `${content}-arm64`) };
  for (const [arch, path] of Object.entries(paths)) writeFileSync(path, `${content} ${arch}`);
  return paths;
}

interface Sums {
  checksums: { algorithm: string; checksumValue: string }[];
}
interface Bill {
  packages: (Sums & { name: string; versionInfo: string; SPDXID: string })[];
  files: (Sums & { SPDXID: string; fileName: string; comment: string })[];
  relationships: { spdxElementId: string; relatedSpdxElement: string; relationshipType: string }[];
}

const read = (bytes: Uint8Array): Bill => JSON.parse(Buffer.from(bytes).toString()) as Bill;
const ours = executables('ours');
const parts = imageParts(root, ours);
const good = read(billOfMaterials(root, ours));
const others = read(billOfMaterials(root, executables('others')));

const packageOf = (bill: Bill, name: string): Bill['packages'][number] => {
  const found = bill.packages.find((one) => one.name === name);
  assert.ok(found !== undefined, name);
  return found;
};
const falsify = (one: Sums | undefined): void => {
  for (const sum of one?.checksums ?? []) sum.checksumValue = 'ab'.repeat(sum.checksumValue.length / 2);
};

interface Row extends Case {
  readonly cheat: (bill: Bill) => void;
  readonly says: RegExp;
}

const rows: readonly Row[] = [
  {
    name: 'the checksum of a package',
    reason: 'its archive may be another one',
    cheat: (bill) => falsify(packageOf(bill, 'zod')),
    says: /^zod@\S+: the bill says SHA512 abab\w+, the image has SHA512 \w+$/,
  },
  {
    name: 'no checksum of a package',
    reason: 'nobody could compare it',
    cheat: (bill) => {
      packageOf(bill, 'zod').checksums = [];
    },
    says: /^zod@\S+: the bill says no checksum, the image has SHA512 /,
  },
  {
    name: 'the checksum of a package of the base',
    reason: 'the name is right',
    cheat: (bill) => falsify(packageOf(bill, 'libc6')),
    says: /^libc6@\S+: the bill says .*SHA256 abab/,
  },
  {
    name: 'the checksum of an executable',
    reason: 'it is all that runs',
    cheat: (bill) => falsify(bill.files[0]),
    says: /^\.\/usr\/bin\/pullwright \(linux-x64\): the bill says SHA1 abab/,
  },
  {
    name: 'checksums of two executables swapped',
    reason: 'both are in the image',
    cheat: ({ files: [one, two] }) => {
      assert.ok(one !== undefined && two !== undefined);
      [one.checksums, two.checksums] = [two.checksums, one.checksums];
    },
    says: /\(linux-arm64\): the bill says/,
  },
  {
    name: 'a package left out',
    reason: 'a scanner finds nothing in it',
    cheat: (bill) => {
      bill.packages = bill.packages.filter(({ name }) => name !== 'zod');
    },
    says: /^not in the bill: zod@/,
  },
  {
    name: 'an executable left out',
    reason: 'the same',
    cheat: (bill) => {
      bill.files.pop();
    },
    says: /^not in the bill: \.\/usr\/bin\/pullwright \(linux-arm64\)$/,
  },
  {
    name: 'a package added',
    reason: 'a scanner warns of what is not there',
    cheat: (bill) => {
      bill.packages.push({ ...packageOf(bill, 'zod'), name: 'more', versionInfo: '1.0.0' });
    },
    says: /^not in the image: more@1\.0\.0$/,
  },
  {
    name: 'the bill of another image',
    reason: 'its names are the same',
    cheat: (bill) => {
      Object.assign(bill, structuredClone(others));
    },
    says: /\(linux-x64\): the bill says/,
  },
  {
    name: 'a relationship left out',
    reason: 'nobody learns that the image contains it',
    cheat: (bill) => {
      const { SPDXID } = packageOf(bill, 'libc6');
      bill.relationships = bill.relationships.filter((one) => one.relatedSpdxElement !== SPDXID);
    },
    says: /^no relationship places libc6@/,
  },
];

test('the bill that belongs to the image is taken', () => {
  assert.deepEqual(billDifferences(good, parts, 'pullwright'), []);
});

table(test, rows, ({ cheat, says }) => {
  const bill = structuredClone(good);
  cheat(bill);
  const found = billDifferences(bill, parts, 'pullwright');
  assert.ok(
    found.some((one) => says.test(one)),
    `${found.length} differences: ${found.join('\n').slice(0, 2000)}`,
  );
});

test.lastly('the scratch folder goes', () => rmSync(work, { recursive: true, force: true }));
test.run();
