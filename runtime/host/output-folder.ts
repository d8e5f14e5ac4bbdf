/**
 * Files that a command writes below a folder which a person named. The folder may be shared, or a checkout: what others put
 * there, links above all, does not lead a write elsewhere and does not choose who reads it.
 */
import { lstatSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { errnoOf, PullwrightError } from '../rules/errors.ts';
import { pathPart } from '../rules/kubernetes/file-name.ts';
import { replaceFile } from './atomic-file.ts';
import { fileError } from './file-errors.ts';

/**
 * The folder itself may be reached by links: its person chose it. Below it none is followed.
 *
 * @example
 * ```ts
 * import { OutputFolder } from './output-folder.ts';
 * import assert from 'node:assert/strict';
 * import { mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
 *
 * const folder = mkdtempSync('/tmp/example-');
 * const output = new OutputFolder(folder);
 * output.write('hosted/a.yaml', 'kind: Secret\n', { secret: true });
 * assert.equal(statSync(`${folder}/hosted/a.yaml`).mode & 0o777, 0o600);
 * symlinkSync('/tmp', `${folder}/elsewhere`);
 * assert.throws(() => output.write('elsewhere/a.yaml', ''), { code: 'IsSymlink' });
 * rmSync(folder, { recursive: true });
 * ```
 */
export class OutputFolder {
  /** Where it really is. */
  readonly path: string;
  readonly #root: string;
  readonly #below: readonly string[];

  /** @param below a folder in it, where all is written; unlike `root`, no link is followed to it */
  constructor(root: string, below = '') {
    this.#root = realPath(resolve(root));
    this.#below = below === '' ? [] : below.split('/').map((part) => pathPart('folder', part));
    this.path = join(this.#root, ...this.#below);
  }

  /**
   * The path of a file in the folder.
   *
   * @param file relative, with `/`, of names that cannot lead elsewhere
   * @throws PullwrightError `IsSymlink` when a link stands above the file
   */
  place(file: string): string {
    return this.#path(file, () => undefined);
  }

  /**
   * Puts a file there, with the folders above it.
   *
   * @param options `secret`: only who runs the program may read it, whatever stood there. Others keep the mode that they have.
   */
  write(file: string, text: string, options: { readonly secret?: boolean } = {}): void {
    makeFolder(this.#root, true);
    const path = this.#path(file, makeFolder);
    const old = lstatSync(path, { throwIfNoEntry: false });
    const open = old === undefined ? 0o644 & ~process.umask() : old.mode & 0o777;
    replaceFile(path, new TextEncoder().encode(text), {
      mode: options.secret === true ? 0o600 : open,
      fresh: true,
      // What was not written in the end is written by the next run; and Node's permission model refuses to sync.
      durable: false,
    });
  }

  /** Removes a file; one that is not there is fine. */
  remove(file: string): void {
    rmSync(this.place(file), { force: true });
  }

  #path(file: string, absent: (folder: string) => void): string {
    const parts = [...this.#below, ...file.split('/')];
    const name = parts.pop() ?? '';
    let folder = this.#root;
    for (const part of parts) {
      folder = `${folder}/${part}`;
      if (!isFolder(folder)) absent(folder);
    }
    return `${folder}/${name}`;
  }
}

function isFolder(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined || stat.isDirectory()) return stat !== undefined;
  const what = stat.isSymbolicLink() ? 'a symbolic link' : 'no folder';
  throw new PullwrightError(`Cannot write below "${path}": it is ${what}, expected a folder`, {
    code: stat.isSymbolicLink() ? 'IsSymlink' : 'NotAFolder',
    disposition: 'terminal',
    hint: 'Remove it, or choose another folder: a link here would let its owner choose where files are written',
  });
}

function makeFolder(path: string, recursive = false): void {
  try {
    mkdirSync(path, { recursive });
  } catch (error) {
    throw fileError('make', path, error);
  }
}

/** Also of a path whose end is not there yet. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    const above = dirname(path);
    const isMissing = errnoOf(error) === 'ENOENT' && lstatSync(path, { throwIfNoEntry: false }) === undefined;
    if (isMissing && above !== path) return join(realPath(above), basename(path));
    throw fileError('find', path, error);
  }
}
