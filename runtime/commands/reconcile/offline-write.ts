/** Writes the objects that an offline run made to a folder: one file each, Secret values as keyed digests unless asked otherwise. */
import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ObjectResult, withoutBookkeeping } from '../../controller/offline.ts';
import { readWhole } from '../../host/atomic-file.ts';
import { OutputFolder } from '../../host/output-folder.ts';
import { encodeObject } from '../../kube/decode.ts';
import { toYaml } from '../../kube/yaml.ts';
import { PullwrightError } from '../../rules/errors.ts';
import { pathPart } from '../../rules/kubernetes/file-name.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { Redacted, reveal } from '../../rules/redacted.ts';

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
 * Writes `<to>/<role>/<namespace or _cluster>/<kind>-<name>.yaml` for every object that is there after the run.
 *
 * @returns the files written, relative to `to`
 * @throws PullwrightError when real values were asked for inside a git work tree, a link stands below `to`, or the folder cannot be
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

/** A digest is no base64, so that nobody can apply it as a credential. */
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
          disposition: 'terminal',
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
        disposition: 'terminal',
        hint: 'Choose an empty folder',
      },
    );
  }
  const earlier = new TextDecoder().decode(reveal(index.bytes)).split('\n');
  // Whoever may write here may have written the index too: what no run of ours would have written is not removed by its word.
  const ours = earlier.filter((file) => /^(?:hosted|management)\/\w[\w.-]*\/\w[\w.-]*\.yaml$/.test(file));
  for (const file of ours) if (!files.has(file)) to.remove(file);
}
