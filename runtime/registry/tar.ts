/**
 * Reads one file out of a stream of tar blocks, without unpacking anything. Source of the rule: POSIX ustar, with the long
 * names of GNU and pax.
 */
import { upToAny } from '../rules/text/trim.ts';
import { RegistryError } from './registry-error.ts';

const BLOCK = 512;
/** Of one archive. An operating system has some ten thousand files; a million empty ones fit into 50 KB, and take ten seconds. */
const MOST_ENTRIES = 200_000;

/** Which files to keep; the longest file kept has `maxBytes`. */
export interface TarWanted {
  readonly names: ReadonlySet<string>;
  readonly maxBytes: number;
}

/**
 * Reads the archive to its end and gives the wanted files by name. A later file of one name replaces the earlier.
 *
 * @throws RegistryError `Damaged` for what is no tar, breaks off, or has a wanted file that is too long
 */
export async function readTar(
  stream: AsyncIterable<Uint8Array>,
  wanted: TarWanted,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const reader = new BlockReader(stream);
  try {
    return await filesIn(reader, wanted);
  } finally {
    await reader.close();
  }
}

async function filesIn(reader: BlockReader, wanted: TarWanted): Promise<ReadonlyMap<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  let longName: string | undefined;
  let entries = 0;
  for (let header = await reader.take(BLOCK); header !== undefined; header = await reader.take(BLOCK)) {
    if (isEmpty(header)) {
      checkEnd(await reader.take(BLOCK));
      break;
    }
    entries += 1;
    if (entries > MOST_ENTRIES)
      throw new RegistryError('Damaged', `the layer has more than ${MOST_ENTRIES} entries`);
    checkHeader(header);
    const size = sizeOf(header);
    const type = String.fromCharCode(header[156] ?? 0);
    const name = longName ?? nameOf(header);
    longName = undefined;
    if (type === 'L' || type === 'x') {
      const text = textOf(await reader.file(size, 64 * 1024));
      longName = type === 'L' ? upToAny(text, '\0') : paxPath(text);
    } else if ((type === '0' || type === '\0') && wanted.names.has(clean(name))) {
      found.set(clean(name), await reader.file(size, wanted.maxBytes));
    } else await reader.skip(size);
  }
  return found;
}

/** Two empty blocks are the end, whatever follows; one is none. */
function checkEnd(second: Uint8Array | undefined): void {
  if (second !== undefined && !isEmpty(second))
    throw new RegistryError('Damaged', 'the layer is no tar archive');
}

function clean(name: string): string {
  return name.replace(/^(?:\.?\/)+/, '');
}

const EMPTY = Buffer.alloc(BLOCK);

function isEmpty(block: Uint8Array): boolean {
  return EMPTY.equals(block);
}

function checkHeader(header: Uint8Array): void {
  const sum = header.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : byte), 0);
  if (sum !== numberOf(header.subarray(148, 156)))
    throw new RegistryError('Damaged', 'the layer is no tar archive');
}

/** Octal, or binary with the top bit set for what octal cannot hold. */
function sizeOf(header: Uint8Array): number {
  const field = header.subarray(124, 136);
  if (((field[0] ?? 0) & 0x80) === 0) return numberOf(field);
  // What is too large for the number is too large for a layer, and breaks off.
  return field.subarray(4).reduce((total, byte) => total * 256 + byte, 0);
}

function numberOf(field: Uint8Array): number {
  const text = upToAny(textOf(field), '\0 ');
  if (!/^[0-7]*$/.test(text)) throw new RegistryError('Damaged', 'the layer is no tar archive');
  return text === '' ? 0 : Number.parseInt(text, 8);
}

function nameOf(header: Uint8Array): string {
  const part = (from: number, length: number): string =>
    upToAny(textOf(header.subarray(from, from + length)), '\0');
  const prefix = textOf(header.subarray(257, 262)) === 'ustar' ? part(345, 155) : '';
  return prefix === '' ? part(0, 100) : `${prefix}/${part(0, 100)}`;
}

/** The `path` of a pax header: lines of `<length> <key>=<value>`. */
function paxPath(text: string): string | undefined {
  return /(?:^|\n)\d+ path=([^\n]*)/.exec(text)?.[1];
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** Holds chunks as they come, so that a file that arrives in many small ones is put together once. */
class BlockReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #parts: Uint8Array[] = [];
  #held = 0;

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#source = stream[Symbol.asyncIterator]();
  }

  /** The next `size` bytes; undefined at the end. */
  async take(size: number): Promise<Uint8Array | undefined> {
    while (this.#held < size) {
      const next = await this.#source.next();
      if (next.done === true) {
        if (this.#held === 0) return undefined;
        throw new RegistryError('Damaged', 'the layer breaks off');
      }
      this.#parts.push(next.value);
      this.#held += next.value.length;
    }
    const [first = EMPTY] = this.#parts;
    const whole = this.#parts.length === 1 ? first : Buffer.concat(this.#parts);
    const rest = whole.subarray(size);
    this.#parts = rest.length === 0 ? [] : [rest];
    this.#held = rest.length;
    return whole.subarray(0, size);
  }

  /** Whoever gives the bytes need not go on. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }

  async file(size: number, maxBytes: number): Promise<Uint8Array> {
    if (size > maxBytes)
      throw new RegistryError(
        'Damaged',
        `a file of the layer has ${size} bytes, at most ${maxBytes} are read`,
      );
    const bytes = (await this.take(size)) ?? new Uint8Array(0);
    await this.skip(padding(size), 0);
    return bytes.slice();
  }

  /** Passes over `size` bytes and their padding, without holding them. */
  async skip(size: number, extra: number = padding(size)): Promise<void> {
    let left = size + extra;
    while (left > 0) {
      const part = await this.take(Math.min(left, this.#held === 0 ? BLOCK : this.#held));
      if (part === undefined) throw new RegistryError('Damaged', 'the layer breaks off');
      left -= part.length;
    }
  }
}

function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}
