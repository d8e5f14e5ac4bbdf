/**
 * Where a command that only looks gets its objects from: a folder of manifests (`--from`), or the cluster of a kubeconfig. Both
 * give a store; what could not be read is said, and the rest is there.
 */
import { readFolder } from '../controller/folder.ts';
import { ObjectStore } from '../controller/store.ts';
import type { KubeClient } from '../kube/client.ts';
import { HttpKubeClient } from '../kube/http-client.ts';
import { loadConnection } from '../kube/kubeconfig.ts';
import { openTransport } from '../kube/transport.ts';
import { describeError, PullwrightError } from '../rules/errors.ts';
import { VERSION } from '../rules/version.ts';
import type { CommandIo } from './command.ts';

/** A kind to look at. */
export interface SourceKind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface SourceFlags {
  readonly from?: string;
  readonly kubeconfig?: string;
}

/** What was found. */
export interface SourceObjects {
  readonly store: ObjectStore;
  /** One sentence for each thing that could not be read. A kind that the cluster does not have is no problem. */
  readonly problems: readonly string[];
}

/**
 * Reads the objects of `kinds`.
 *
 * @throws UsageError, PullwrightError when there is no folder or no cluster to ask
 */
export async function readObjects(
  flags: SourceFlags,
  kinds: readonly SourceKind[],
  io: CommandIo,
): Promise<SourceObjects> {
  if (flags.from === undefined) return readCluster(flags.kubeconfig, kinds, io);
  const folder = await readFolder(flags.from, new Set(kinds.map((kind) => kind.kind)));
  return {
    store: folder.store,
    problems: folder.problems.map(({ file, line, message }) => `${file}:${line}: ${message}`),
  };
}

async function readCluster(
  kubeconfig: string | undefined,
  kinds: readonly SourceKind[],
  io: CommandIo,
): Promise<SourceObjects> {
  const connection = await loadConnection(kubeconfig, io.env);
  const client = new HttpKubeClient({
    connection,
    transport: await openTransport(connection),
    userAgent: `pullwright/${VERSION}`,
  });
  try {
    return await readKinds(client, kinds);
  } finally {
    client.close();
  }
}

/** One request a kind (more where a list has pages), all at once. */
export async function readKinds(client: KubeClient, kinds: readonly SourceKind[]): Promise<SourceObjects> {
  const store = new ObjectStore();
  const problems: string[] = [];
  await Promise.all(
    kinds.map(async (kind) => {
      try {
        for await (const object of objectsOf(client, kind)) store.set(object);
      } catch (error) {
        if (!(error instanceof PullwrightError && error.code === 'KindNotServed'))
          problems.push(describeError(error));
      }
    }),
  );
  return { store, problems: problems.sort() };
}

async function* objectsOf(client: KubeClient, kind: SourceKind) {
  const { name, labelSelector, fieldSelector } = kind;
  if (name !== undefined) {
    const found = await client.get({ ...kind, name });
    if (found !== undefined) yield found;
    return;
  }
  let next: string | undefined;
  do {
    const page = await client.list(kind, {
      limit: 500,
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...(next === undefined ? {} : { next }),
    });
    yield* page.items;
    next = page.next;
  } while (next !== undefined);
}
