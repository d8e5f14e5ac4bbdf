/** The folders that `explain` and `test` look into, as one store. */
import { readFolder } from '../../controller/folder.ts';
import { ObjectStore } from '../../controller/store.ts';
import { UsageError } from '../../rules/errors.ts';
import { describeObject } from '../../rules/kubernetes/object.ts';
import { clustersIn, type Located } from '../../rules/node-registries/clusters.ts';
import { bringCopies, INJECTION_FOLDER_KINDS } from './injected.ts';
import { FOLDER_KINDS } from './world.ts';

export interface ReadWorld {
  readonly store: ObjectStore;
  readonly problems: readonly string[];
  /** `Secret/web/pull` to `dump/secrets.yaml:12`. */
  readonly places: ReadonlyMap<string, string>;
  /** What keeps profiles of the folder from bringing what they name. */
  readonly notes: readonly string[];
}

/** Reads all of `dirs`, with the copies that its profiles will bring; of an object that is given twice the last counts. `more` are kinds beside those of pulls. */
export async function readFolders(dirs: readonly string[], more: readonly string[] = []): Promise<ReadWorld> {
  const kinds = new Set([...FOLDER_KINDS, ...INJECTION_FOLDER_KINDS, ...more]);
  const store = new ObjectStore();
  const problems: string[] = [];
  const places = new Map<string, string>();
  const sets: Located[] = [];
  for (const dir of dirs) {
    const folder = await readFolder(dir, kinds);
    // A single file is its own folder.
    const path = (file: string): string => (file === dir ? file : `${dir}/${file}`);
    problems.push(...folder.problems.map(({ file, line, message }) => `${path(file)}:${line}: ${message}`));
    for (const { object, file, line } of folder.manifests) {
      const { name, namespace } = object.metadata;
      sets.push({ object, file: path(file) });
      places.set(describeObject({ kind: object.kind, namespace, name }), `${path(file)}:${line}`);
    }
    for (const object of folder.store) store.set(object);
  }
  refuseSeveral(sets);
  return { store, problems, places, notes: bringCopies(store) };
}

/** Mirror sets of several clusters must not be merged: no node goes by them all. */
function refuseSeveral(found: readonly Located[]): void {
  const clusters = clustersIn(found);
  if (clusters.length === 1) return;
  const names = clusters.map(({ name }) => name).join(', ');
  throw new UsageError(
    `Cannot tell which cluster is meant: the folders have mirror sets of ${clusters.length} clusters (${names}); give --from of one`,
  );
}
