/** What `verify` asks about: the images, who pulls them, and the credentials that would be tried. */
import type { ObjectStore } from '../../controller/store.ts';
import { parseImageReference } from '../../rules/auth-lookup/image-reference.ts';
import { type PullAttempt, pullAttempts } from '../../rules/auth-lookup/pull-attempts.ts';
import { UsageError } from '../../rules/errors.ts';
import type { CommandIo } from '../command.ts';
import { readFolders } from '../explain/folders.ts';
import { GLOBAL_SECRET, PLATFORM_SECRET } from '../explain/node-file.ts';
import { CLUSTER_KINDS, nextNodeKinds } from '../explain/node-kinds.ts';
import { findWorld, inputIn, type WorldOptions } from '../explain/world.ts';
import { type ClusterAccess, type NextKinds, readObjects, type SourceKind } from '../object-source.ts';
import { type ImageUser, imageUsers, USING_KINDS } from './in-use.ts';

/** An image that somebody pulls, with all that is tried for it. */
export interface ImageInUse {
  readonly image: string;
  readonly usedBy: string;
  readonly attempts: readonly PullAttempt[];
  readonly blockedBy?: string;
}

export interface WorldOfUse {
  readonly users: readonly ImageInUse[];
  /** What could not be read, and images that are none. */
  readonly problems: readonly string[];
  /** Mirrors that are skipped, and what to change. */
  readonly hints: readonly string[];
}

interface Flags extends ClusterAccess {
  /** Absent: all; for named images, the one. */
  readonly namespace: readonly string[] | undefined;
  readonly 'service-account': string;
  /** Absent: whatever is listed. */
  readonly 'secret-name'?: readonly string[] | undefined;
  readonly from: readonly string[] | undefined;
  readonly cluster: string | undefined;
}

/**
 * Reads a cluster or folders. `images` empty: all that are in use.
 *
 * @throws UsageError, PullwrightError
 */
export async function readWorldOfUse(
  flags: Flags,
  images: readonly string[],
  io: CommandIo,
): Promise<WorldOfUse> {
  const named = images.length > 0;
  for (const image of images) {
    const parsed = parseImageReference(image);
    if (!parsed.ok) throw new UsageError(`Cannot read image "${image}": ${parsed.goText}`);
  }
  const { store, problems, hosted } = await read(flags, named, io);
  const users = named ? [askedUser(flags, images)] : usersIn(store, flags.namespace);
  const options = { complete: problems.length === 0 && flags['secret-name'] === undefined, hosted };
  const found = users.map((user) => attemptsOf(store, user, options));
  return {
    users: found.flatMap((one) => one.images),
    problems: [...problems, ...new Set(found.flatMap((one) => one.notes))],
    hints: [...new Set(found.flatMap((one) => one.hints))],
  };
}

function usersIn(store: ObjectStore, namespaces: readonly string[] | undefined): readonly ImageUser[] {
  const all = imageUsers(store);
  return namespaces === undefined ? all : all.filter(({ puller }) => namespaces.includes(puller.namespace));
}

function askedUser(flags: Flags, images: readonly string[]): ImageUser {
  const namespace = flags.namespace?.[0] ?? 'default';
  const serviceAccount = flags['service-account'];
  const usedBy = `ServiceAccount/${namespace}/${serviceAccount}`;
  return { puller: { namespace, serviceAccount }, images, usedBy, secrets: [] };
}

async function read(
  flags: Flags,
  named: boolean,
  io: CommandIo,
): Promise<{ readonly store: ObjectStore; readonly problems: readonly string[]; readonly hosted: boolean }> {
  if (flags.from !== undefined) return readFolders(flags.from, { cluster: flags.cluster });
  const { namespace, from: _from, cluster: _cluster, 'secret-name': _names, ...access } = flags;
  const within = named ? [namespace?.[0] ?? 'default'] : namespace;
  const scopes: readonly { readonly namespace?: string }[] = within?.map((one) => ({ namespace: one })) ?? [
    {},
  ];
  const account = { apiVersion: 'v1', kind: 'ServiceAccount' };
  const kinds: readonly SourceKind[] = [
    ...scopes.flatMap((scope) =>
      [...(named ? [] : USING_KINDS), account].map((kind) => ({ ...kind, ...scope })),
    ),
    GLOBAL_SECRET,
    ...CLUSTER_KINDS,
  ];
  const found = await readObjects(access, kinds, io, [...nextKinds(flags, named), nextNodeKinds]);
  return { ...found, hosted: false };
}

const SECRET = { apiVersion: 'v1', kind: 'Secret' } as const;

/** The Secrets that are listed, by name; all of a namespace only where the credential provider looks at all of them. */
function nextKinds(flags: Flags, named: boolean): readonly NextKinds[] {
  return [
    (store) => {
      const users = named ? [askedUser(flags, [])] : usersIn(store, flags.namespace);
      const wanted = new Map<string, SourceKind>();
      const only = flags['secret-name'];
      const provider = store.list(PROVIDER).length > 0 && only === undefined;
      for (const { puller, secrets } of users) {
        const { namespace } = puller;
        if (provider) wanted.set(namespace, { ...SECRET, namespace });
        else
          for (const name of (named ? accountSecrets(store, puller) : secrets).filter(
            (one) => only?.includes(one) ?? true,
          ))
            wanted.set(`${namespace}/${name}`, { ...SECRET, namespace, name });
      }
      return [...wanted.values(), ...(store.get(GLOBAL_SECRET) === undefined ? [PLATFORM_SECRET] : [])];
    },
  ];
}

const PROVIDER = { apiVersion: 'config.openshift.io/v1', kind: 'CRIOCredentialProviderConfig' } as const;

function accountSecrets(store: ObjectStore, puller: ImageUser['puller']): readonly string[] {
  const { namespace, serviceAccount: name } = puller;
  const account = store.get({ apiVersion: 'v1', kind: 'ServiceAccount', namespace, name });
  const listed = account?.['imagePullSecrets'];
  return Array.isArray(listed) ? (listed as { name?: string }[]).flatMap((one) => one.name ?? []) : [];
}

function attemptsOf(
  store: ObjectStore,
  { puller, images, usedBy }: ImageUser,
  options: WorldOptions,
): {
  readonly images: readonly ImageInUse[];
  readonly notes: readonly string[];
  readonly hints: readonly string[];
} {
  const world = findWorld(store, puller, options);
  const notes: string[] = [];
  const hints: string[] = [];
  const found = images.flatMap((image): readonly ImageInUse[] => {
    const parsed = parseImageReference(image);
    if (!parsed.ok) {
      notes.push(`${usedBy}: image "${image}" cannot be read: ${parsed.goText}`);
      return [];
    }
    const { explanation, attempts } = pullAttempts(inputIn(world, parsed.reference, { brief: true }));
    const blocked = explanation.kubelet.blockedBy;
    const { mirrorFix } = explanation;
    if (mirrorFix !== undefined) hints.push(`${usedBy}: ${mirrorFix.message}; fix: ${mirrorFix.fix}`);
    return [
      {
        image: explanation.image,
        usedBy,
        attempts,
        ...(blocked === undefined ? {} : { blockedBy: `${blocked.source} ${blocked.why}` }),
      },
    ];
  });
  return {
    images: found,
    notes: [...world.notes.filter((note) => note.startsWith('error')), ...notes],
    hints,
  };
}
