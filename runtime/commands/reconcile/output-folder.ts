import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { errnoOf, PullwrightError } from '../../core/errors.ts';
import { type KubeObject, pathPart } from '../../core/kubernetes/object.ts';
import { Redacted, reveal } from '../../core/redacted.ts';
import { type ObjectResult, withoutBookkeeping } from '../../engine/offline/offline.ts';
import { encodeObject } from '../../kube/decode.ts';
import { toYaml } from '../../kube/yaml.ts';
import { fileError, readWhole, replaceFile } from '../../node/atomic-file.ts';

// Files that a command writes below a folder which a person named. The folder may be shared, or a checkout: what others put
// there, links above all, does not lead a write elsewhere and does not choose who reads it.

/**
 * The folder itself may be reached by links: its person chose it. Below it none is followed.
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
   * @throws PullwrightError `IsSymlink` when a folder above the file is a link
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

  /** Removes a file, if it exists. */
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
    retryPolicy: 'terminal',
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

/** Also of a path whose end does not exist yet. */
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

// Writes the objects that an offline run made to a folder: one file each, Secret values as keyed digests unless requested otherwise.

/** Names the files that an earlier run wrote, so that stale ones go and foreign ones stay. */
const INDEX = '.pullwright-reconcile';

export interface WriteOptions {
  readonly to: string;
  /** Of several clusters each has a folder below `to`, of this name. */
  readonly cluster?: string;
  readonly withSecrets: boolean;
  /** Key of the digests; a new one when absent. */
  readonly digestKey?: Redacted<string>;
  readonly reconcilers: readonly string[];
}

/**
 * Writes `<to>/<role>/<namespace or _cluster>/<kind>-<name>.yaml` for every object that exists after the run.
 *
 * @returns the files written, relative to `to`
 * @throws PullwrightError when real values are requested inside a git work tree, there is a link below `to`, or the folder cannot be
 *   written
 */
export function writeObjects(results: readonly ObjectResult[], options: WriteOptions): readonly string[] {
  const to = new OutputFolder(options.to, options.cluster);
  const key = options.digestKey === undefined ? randomBytes(32) : Buffer.from(reveal(options.digestKey));
  const files = new Map<string, string>();
  for (const { ref, after } of results) {
    if (after === undefined) continue;
    const bare = withoutBookkeeping(after, options.reconcilers);
    const content = options.withSecrets ? encodeObject(bare) : digested(bare, key);
    files.set(fileOf(ref.role, after), toYaml(content, { lineWidth: 0 }));
  }
  const written = [...files.keys()].sort();
  if (options.withSecrets)
    for (const folder of new Set(['', ...written.map((file) => dirname(file))]))
      refuseWorkTree(join(to.path, folder));
  removeStale(to, files);
  for (const [file, text] of files) to.write(file, text, { secret: options.withSecrets });
  to.write(INDEX, `${written.join('\n')}\n`);
  return written;
}

function fileOf(role: string, object: KubeObject): string {
  const { namespace, name } = object.metadata;
  const folder = namespace === undefined ? '_cluster' : pathPart('namespace', namespace);
  return `${role}/${folder}/${pathPart('kind', object.kind).toLowerCase()}-${pathPart('name', name)}.yaml`;
}

/** A digest is not valid base64, so that it cannot be applied as a credential. */
function digested(value: unknown, key: Uint8Array): unknown {
  if (value instanceof Redacted) {
    const digest = createHmac('sha256', key)
      .update(reveal(value as Redacted<string>))
      .digest('hex');
    return `hmac-sha256:${digest.slice(0, 32)}`;
  }
  if (Array.isArray(value)) return value.map((element) => digested(element, key));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, digested(child, key)]));
}

function refuseWorkTree(to: string): void {
  for (let dir = to; ; dir = dirname(dir)) {
    if (existsSync(join(dir, '.git'))) {
      throw new PullwrightError(
        `Cannot write Secret values to "${to}": it is inside the git work tree "${dir}"`,
        {
          code: 'InsideWorkTree',
          retryPolicy: 'terminal',
          hint: 'Choose a folder outside, or leave --with-secrets out',
        },
      );
    }
    if (dir === dirname(dir)) return;
  }
}

function removeStale(to: OutputFolder, files: ReadonlyMap<string, string>): void {
  const index = readWhole(to.place(INDEX));
  if (index === undefined) {
    const present = existsSync(to.path) ? readdirSync(to.path) : [];
    const clash = present.filter((name) => name === 'hosted' || name === 'management');
    if (clash.length === 0) return;
    throw new PullwrightError(
      `Cannot write to "${to.path}": it holds "${clash.join('", "')}", which no earlier run wrote`,
      {
        code: 'FolderNotOurs',
        retryPolicy: 'terminal',
        hint: 'Choose an empty folder',
      },
    );
  }
  const earlier = new TextDecoder().decode(reveal(index.bytes)).split('\n');
  // The index is untrusted, as every writer of the folder can change it: only paths that a run can have written are removed.
  const ours = earlier.filter((file) => /^(?:hosted|management)\/\w[\w.-]*\/\w[\w.-]*\.yaml$/.test(file));
  for (const file of ours) if (!files.has(file)) to.remove(file);
}
