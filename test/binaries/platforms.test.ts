// deadline: 300 s
/** Executables for laptops, which cannot run here: their headers, the machine that they are for, and the signature that macOS asks for. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { signedAdHoc } from '../../build/mach-o.ts';
import { executable } from '../support/executable.ts';
import { suite } from '../support/suite.ts';

const test = suite('executables for laptops');

/** `CPU_TYPE_*` of Mach-O. */
const MAC_CPU = { arm64: 0x0100000c, x64: 0x01000007 } as const;

interface MachO {
  readonly cpu: number;
  readonly type: number;
  readonly signature: { readonly at: number; readonly size: number };
  readonly linkEdit: { readonly at: number; readonly size: number; readonly room: number };
}

/** Read again here, by the tables of `mach-o/loader.h`. */
function machO(file: Buffer): MachO {
  assert.equal(file.readUInt32LE(0), 0xfeedfacf, 'the magic number of a 64-bit Mach-O file');
  let signature = { at: 0, size: 0 };
  let linkEdit = { at: 0, size: 0, room: 0 };
  for (let index = 0, at = 32; index < file.readUInt32LE(16); index++, at += file.readUInt32LE(at + 4)) {
    const command = file.readUInt32LE(at);
    if (command === 0x1d) signature = { at: file.readUInt32LE(at + 8), size: file.readUInt32LE(at + 12) };
    if (command === 0x19 && file.toString('latin1', at + 8, at + 18) === '__LINKEDIT')
      linkEdit = {
        room: Number(file.readBigUInt64LE(at + 32)),
        at: Number(file.readBigUInt64LE(at + 40)),
        size: Number(file.readBigUInt64LE(at + 48)),
      };
  }
  return { cpu: file.readUInt32LE(4), type: file.readUInt32LE(12), signature, linkEdit };
}

/** What the kernel of macOS looks at: the hash of each page, over everything before the signature. */
function assertSigned(file: Buffer, { signature, linkEdit }: MachO): void {
  assert.equal(signature.at + signature.size, file.length, 'the signature is the end of the file');
  assert.equal(linkEdit.at + linkEdit.size, file.length, 'and within __LINKEDIT');
  assert.ok(linkEdit.room >= linkEdit.size);
  assert.equal(file.readUInt32BE(signature.at), 0xfade0cc0, 'a super blob');
  assert.equal(file.readUInt32BE(signature.at + 12), 0, 'whose only blob is a code directory');
  const directory = file.subarray(signature.at + file.readUInt32BE(signature.at + 16));
  assert.equal(directory.readUInt32BE(0), 0xfade0c02);
  const [hashes, slots, limit] = [16, 28, 32].map((at) => directory.readUInt32BE(at));
  assert.equal(limit, signature.at, 'all before it is signed');
  assert.equal(slots, Math.ceil(signature.at / 4096));
  assert.equal(directory.readUInt32BE(12) & 2, 2, 'ad hoc');
  for (let page = 0; page < (slots ?? 0); page++) {
    const bytes = file.subarray(page * 4096, Math.min((page + 1) * 4096, signature.at));
    const at = (hashes ?? 0) + page * 32;
    const isSame = createHash('sha256')
      .update(bytes)
      .digest()
      .equals(directory.subarray(at, at + 32));
    assert.ok(isSame, `page ${page} is another than the signed one`);
  }
}

for (const arch of ['arm64', 'x64'] as const)
  test(`darwin, ${arch}: a program for that processor, every page of it signed`, async () => {
    const file = readFileSync(await executable(arch, 'darwin'));
    const found = machO(file);
    assert.equal(found.cpu, MAC_CPU[arch]);
    assert.equal(found.type, 2, 'a program');
    assertSigned(file, found);
    // The compiler itself signs for arm64, and what is signed already must come out as it was.
    assert.ok(signedAdHoc(file).equals(file));
  });

test('a changed page would be found, and what is no program of macOS is not signed', async () => {
  const file = readFileSync(await executable('arm64', 'darwin'));
  const changed = Buffer.from(file);
  changed.writeUInt8(changed.readUInt8(50_000_000) ^ 1, 50_000_000);
  assert.throws(() => assertSigned(changed, machO(changed)), /page 12207 is another/);
  for (const bytes of [Buffer.alloc(0), Buffer.alloc(64), file.subarray(0, 31)])
    assert.throws(() => signedAdHoc(bytes), /Cannot sign the program for macOS: .*expected a 64-bit Mach-O/);
});

test('windows, x64: a console program for that processor', async () => {
  const file = readFileSync(await executable('x64', 'windows'));
  assert.equal(file.toString('latin1', 0, 2), 'MZ');
  const at = file.readUInt32LE(0x3c);
  assert.equal(file.toString('latin1', at, at + 4), 'PE\0\0');
  assert.equal(file.readUInt16LE(at + 4), 0x8664, 'IMAGE_FILE_MACHINE_AMD64');
  assert.equal(file.readUInt16LE(at + 24), 0x20b, 'PE32+');
  assert.equal(file.readUInt16LE(at + 24 + 68), 3, 'IMAGE_SUBSYSTEM_WINDOWS_CUI');
});

test.run();
