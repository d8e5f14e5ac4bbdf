/** Takes what a person drops or chooses: manifests stay, and of everything else it is said why it does not. */
import { onOneLine } from '../../runtime/core/text.ts';
import type { HeldFile } from './messages.ts';

/** Files that the person added. */
export interface Taken {
  /** Folder that contains all files. */
  readonly root: string;
  readonly files: readonly HeldFile[];
  /** One sentence for each skipped file, and one for the skipped files that are not listed. */
  readonly leftOut: readonly string[];
}

/** A file as the browser gives it, and its path. */
export interface GivenFile {
  readonly path: string;
  readonly file: Blob;
}

const MIB = 1024 * 1024;
const MAX_FILE = 50 * MIB;
const MAX_ALL = 200 * MIB;
const MAX_FILES = 20_000;
/** Sentences that a person can read. */
const MAX_SAID = 8;

/** Reads them, in the order of their paths. */
export async function take(given: readonly GivenFile[]): Promise<Taken> {
  const files: HeldFile[] = [];
  const leftOut: string[] = [];
  let size = 0;
  for (const { path, file } of given.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    const why = refused(path, file, { files: files.length, size }) ?? (await readInto(files, path, file));
    if (why === undefined) size += file.size;
    else leftOut.push(`${shortened(path)} is left out: ${why}`);
  }
  return { ...underOneRoot(files), leftOut: fewOf(leftOut) };
}

function refused(
  path: string,
  { size }: Blob,
  so: { readonly files: number; readonly size: number },
): string | undefined {
  if (path.split('/').some((part) => part.startsWith('.'))) return 'it is hidden';
  if (!/\.(ya?ml|json)$/.test(path)) return 'expected a file that ends in .yaml, .yml or .json';
  if (size > MAX_FILE) return `it has ${Math.ceil(size / MIB)} MiB, expected at most ${MAX_FILE / MIB}`;
  if (so.size + size > MAX_ALL) return `all files together may have ${MAX_ALL / MIB} MiB`;
  if (so.files >= MAX_FILES) return `there are more than ${MAX_FILES} files`;
  return undefined;
}

/** Why it is not text; undefined when it was read. */
async function readInto(files: HeldFile[], path: string, file: Blob): Promise<string | undefined> {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
  } catch (error) {
    return error instanceof TypeError ? 'it is not text in UTF-8' : 'the browser cannot read it';
  }
  if (text.includes('\0')) return 'it is not text';
  files.push({ path, text });
  return undefined;
}

/** A folder keeps its name; files that come alone are put into one. */
function underOneRoot(files: readonly HeldFile[]): Pick<Taken, 'root' | 'files'> {
  const firsts = new Set(files.map(({ path }) => (path.includes('/') ? path.split('/')[0] : undefined)));
  const [only] = firsts;
  if (firsts.size === 1 && only !== undefined) return { root: only, files };
  return { root: 'dropped', files: files.map(({ path, text }) => ({ path: `dropped/${path}`, text })) };
}

function fewOf(said: readonly string[]): readonly string[] {
  if (said.length <= MAX_SAID) return said;
  return [...said.slice(0, MAX_SAID), `${said.length - MAX_SAID} more are left out`];
}

function shortened(path: string): string {
  const line = onOneLine(path);
  return line.length <= 120 ? line : `${line.slice(0, 60)} … ${line.slice(-60)}`;
}

/** Files of a drop, those of dropped folders included. */
export async function droppedFiles(transfer: DataTransfer): Promise<readonly GivenFile[]> {
  // Read all entries before the first await: the list is empty afterwards.
  const items = [...transfer.items].filter(({ kind }) => kind === 'file');
  const entries = items.map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const found: GivenFile[] = [];
  for (const { entry, file } of entries) {
    if (entry !== null) await walk(entry, found);
    else if (file !== null) found.push({ path: file.name, file });
  }
  return found;
}

async function walk(entry: FileSystemEntry, found: GivenFile[]): Promise<void> {
  if (found.length > MAX_FILES || entry.name.startsWith('.')) return;
  if (entry.isFile) {
    const file = await new Promise<File | undefined>((resolve) =>
      (entry as FileSystemFileEntry).file(resolve, () => resolve(undefined)),
    );
    if (file !== undefined) found.push({ path: entry.fullPath.slice(1), file });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    const some = await new Promise<readonly FileSystemEntry[]>((resolve) =>
      reader.readEntries(resolve, () => resolve([])),
    );
    if (some.length === 0) return;
    for (const one of some) await walk(one, found);
  }
}

/** Files of a field, with the folder that was chosen. */
export function chosenFiles(field: HTMLInputElement): readonly GivenFile[] {
  return [...(field.files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}
