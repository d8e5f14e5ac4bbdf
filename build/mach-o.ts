/**
 * An ad hoc signature for a program of macOS, in place of the one it has.
 *
 * The compiler puts our program into Bun's and signs the result for arm64, where nothing runs without a signature. For x64 it
 * leaves the signature of Bun's maker, which no longer fits: macOS ends such a program at once.
 *
 * Source of the format: `cs_blobs.h` of XNU, and Go's `cmd/internal/codesign`, which writes the same. The signature names nobody:
 * it says that the pages are those that were written.
 */
import { createHash } from 'node:crypto';
import { PullwrightError } from '../runtime/rules/errors.ts';

const MAGIC_64 = 0xfeedfacf;
const HEADER_BYTES = 32;
const LC_SEGMENT_64 = 0x19;
const LC_CODE_SIGNATURE = 0x1d;
const PAGE = 4096;
/** Segments of arm64 begin at multiples of it; x64 takes them too. */
const SEGMENT_PAGE = 16384;

/** Offset of each load command. */
interface Commands {
  readonly text: number;
  readonly linkEdit: number;
  readonly signature: number;
}

/**
 * The same program with a signature of its own.
 *
 * @param program a 64-bit Mach-O executable whose signature is the last thing in it
 * @throws PullwrightError `NotMachO` when it is something else
 */
export function signedAdHoc(program: Uint8Array): Buffer {
  const given = Buffer.from(program.buffer, program.byteOffset, program.byteLength);
  const { text, linkEdit, signature } = commandsOf(given);
  const limit = given.readUInt32LE(signature + 8);
  const pages = Math.ceil(limit / PAGE);
  const size = SUPER_BLOB_BYTES + DIRECTORY_BYTES + IDENTIFIER.length + pages * 32;
  const signed = Buffer.alloc(limit + size);
  given.copy(signed, 0, 0, limit);
  const held = BigInt(limit + size) - signed.readBigUInt64LE(linkEdit + 40);
  signed.writeUInt32LE(size, signature + 12);
  const room = signed.readBigUInt64LE(linkEdit + 32);
  if (room < held) signed.writeBigUInt64LE(roundedUp(held), linkEdit + 32);
  signed.writeBigUInt64LE(held, linkEdit + 48);
  const segment = { at: signed.readBigUInt64LE(text + 40), size: signed.readBigUInt64LE(text + 48) };
  const directory = writeDirectory(signed.subarray(limit), { limit, pages, segment });
  for (let page = 0; page < pages; page += 1) {
    const bytes = signed.subarray(page * PAGE, Math.min((page + 1) * PAGE, limit));
    createHash('sha256')
      .update(bytes)
      .digest()
      .copy(directory, DIRECTORY_BYTES + IDENTIFIER.length + page * 32);
  }
  return signed;
}

const SUPER_BLOB_BYTES = 20;
const DIRECTORY_BYTES = 88;
/** As linkers name what they sign. */
const IDENTIFIER = Buffer.from('a.out\0');
/** Ad hoc, and by a linker: tools that sign properly replace it without being told to. */
const FLAGS = 0x20002;

interface Signed {
  /** How many bytes are signed. */
  readonly limit: number;
  readonly pages: number;
  /** `__TEXT` */
  readonly segment: { readonly at: bigint; readonly size: bigint };
}

/** Writes all but the hashes. Big-endian, unlike the rest of the file. Gives the code directory. */
function writeDirectory(blob: Buffer, { limit, pages, segment }: Signed): Buffer {
  const directory = blob.subarray(SUPER_BLOB_BYTES);
  for (const [index, word] of [0xfade0cc0, blob.length, 1, 0, SUPER_BLOB_BYTES].entries())
    blob.writeUInt32BE(word, index * 4);
  const hashesAt = DIRECTORY_BYTES + IDENTIFIER.length;
  const words = [0xfade0c02, directory.length, 0x20400, FLAGS, hashesAt, DIRECTORY_BYTES, 0, pages, limit];
  for (const [index, word] of words.entries()) directory.writeUInt32BE(word, index * 4);
  // SHA-256 of 32 bytes, no platform, pages of 2^12.
  Buffer.from([32, 2, 0, 12]).copy(directory, 36);
  directory.writeBigUInt64BE(segment.at, 64);
  directory.writeBigUInt64BE(segment.size, 72);
  // The main program.
  directory.writeBigUInt64BE(1n, 80);
  IDENTIFIER.copy(directory, DIRECTORY_BYTES);
  return directory;
}

function commandsOf(program: Buffer): Commands {
  if (program.length < HEADER_BYTES || program.readUInt32LE(0) !== MAGIC_64)
    throw notMachO('it has no header of one');
  let text: number | undefined;
  let linkEdit: number | undefined;
  let signature: number | undefined;
  let at = HEADER_BYTES;
  for (let left = program.readUInt32LE(16); left > 0; left -= 1) {
    const kind = program.readUInt32LE(at);
    const name =
      kind === LC_SEGMENT_64 ? program.toString('latin1', at + 8, at + 24).replace(/\0+$/, '') : '';
    if (name === '__TEXT') text = at;
    if (name === '__LINKEDIT') linkEdit = at;
    if (kind === LC_CODE_SIGNATURE) signature = at;
    at += program.readUInt32LE(at + 4);
  }
  if (text === undefined || linkEdit === undefined || signature === undefined)
    throw notMachO('it lacks __TEXT, __LINKEDIT or a signature to replace');
  return { text, linkEdit, signature };
}

function roundedUp(bytes: bigint): bigint {
  const page = BigInt(SEGMENT_PAGE);
  return ((bytes + page - 1n) / page) * page;
}

function notMachO(why: string): PullwrightError {
  return new PullwrightError(
    `Cannot sign the program for macOS: ${why}, expected a 64-bit Mach-O executable`,
    {
      code: 'NotMachO',
      disposition: 'terminal',
    },
  );
}
