/**
 * Watches the two pull secrets by name. The kubelet updates a mount only when it syncs the pod, up to a minute later. When the
 * watch fails, the agent reads the mounts.
 */

import { createHash } from 'node:crypto';
import { closeSync, existsSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { upstreamAgentFault } from '../../core/docker-config/pull-secret.ts';
import { describeError, errnoOf, PullwrightError } from '../../core/errors.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../core/kubernetes/hypershift.ts';
import type { KubeObject, SecretObject } from '../../core/kubernetes/object.ts';
import type { Fields, Logger } from '../../core/logger.ts';
import { type Redacted, redact, reveal } from '../../core/redacted.ts';
import type { KubeClient } from '../../kube/client.ts';
import { fileError } from '../../node/atomic-file.ts';
import type { Clock } from '../../node/clock.ts';
import { type NamedWatch, watchNamed } from '../../node/report.ts';
import { CONFIRM_REMOVAL, confirmedRemovals } from '../removal-guard.ts';
import { type AgentDocument, parseDocument } from './document.ts';

/** One of the two pull secrets. */
export type SourceName = 'global' | 'original';

/** A secret from the watch cache. */
export interface WatchedSecret extends Omit<MountedSecret, 'path'> {
  /** Whether the watch is open, so that the cache is current. */
  readonly live: boolean;
}

export interface SecretWatchOptions {
  readonly client: () => Promise<KubeClient>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called after every change. */
  readonly changed: () => void;
}

/** An immutable Secret is updated by delete and create; the gap must not remove the node's credentials. */
const GONE_MS = 500;

class Seen {
  object: KubeObject | undefined;
  listed = false;
  live = false;
  /** Time of the deletion, by the monotonic clock. */
  goneAt: number | undefined;
}

export class SecretWatch {
  readonly #options: SecretWatchOptions;
  readonly #seen: Readonly<Record<SourceName, Seen>> = { global: new Seen(), original: new Seen() };
  readonly #stop = new AbortController();
  /** Both secrets are listed. */
  readonly #filled = Promise.withResolvers<void>();

  constructor(options: SecretWatchOptions) {
    this.#options = options;
  }

  /** Starts the watches and waits up to `ms` until both secrets are listed. Never rejects. */
  async open(ms: number): Promise<void> {
    const { client, clock } = this.#options;
    const watches = [this.#watch('global'), this.#watch('original')];
    void watchNamed(watches, client, (error) => this.#failed(error), this.#stop.signal, clock);
    const enough = new AbortController();
    await Promise.race([this.#filled.promise, clock.sleep(ms, enough.signal)]);
    enough.abort();
  }

  /** Returns undefined until the first list. */
  read(name: SourceName): WatchedSecret | undefined {
    const { object, listed, live, goneAt } = this.#seen[name];
    if (!listed) return undefined;
    const gone = goneAt !== undefined && this.#options.clock.monotonic() - goneAt >= GONE_MS;
    if (object === undefined || gone) return { live };
    const { data } = object as SecretObject;
    const valueOf = (key: string): Buffer | undefined =>
      data?.[key] && Buffer.from(reveal(data[key]), 'base64');
    const value = valueOf(NAMES.dataKey);
    const confirms = object.metadata.annotations?.[CONFIRM_REMOVAL];
    return {
      bytes: value && redact(new Uint8Array(value)),
      judged: valueOf(NAMES.judgedKey)?.toString('utf8'),
      confirmed: typeof confirms === 'string' ? confirmedRemovals(confirms) : [],
      resourceVersion: object.metadata.resourceVersion,
      live,
    };
  }

  close(): void {
    this.#stop.abort();
  }

  #watch(name: SourceName): NamedWatch {
    const seen = this.#seen[name];
    const { changed } = this.#options;
    const set = (object: KubeObject | undefined): void => {
      if (object === undefined && seen.object !== undefined) void this.#deleted(seen);
      else {
        seen.object = object;
        seen.goneAt = undefined;
      }
      seen.listed = true;
      if (this.#seen.global.listed && this.#seen.original.listed) this.#filled.resolve();
      changed();
    };
    return {
      object: { apiVersion: 'v1', kind: 'Secret', namespace: NAMES.namespace, name: NAMES[name] },
      sink: {
        replace: ([object]) => set(object),
        set,
        delete: () => set(undefined),
        state: (state) => {
          seen.live = state.is === 'synced';
          if (state.is !== 'failing') return;
          this.#failed(state.error, { secret: NAMES[name] });
          changed();
        },
      },
    };
  }

  #failed(error: unknown, about: Fields = {}): void {
    const fields = { ...about, error: describeError(error) };
    this.#options.log.warn('Cannot watch the pull secrets: the mounts are read instead', fields);
  }

  async #deleted(seen: Seen): Promise<void> {
    const { clock, changed } = this.#options;
    seen.goneAt ??= clock.monotonic();
    if (await clock.sleep(GONE_MS, this.#stop.signal)) changed();
  }
}

// Selects the mounted pull secret that the node uses.
// Source of the rule: requirement 1, "Node-level synchronization": the merged secret when present, else the copy of the
// platform's. An unreadable or invalid merged secret stops the pass: falling back to the platform's secret would remove the
// tenant's credentials from running nodes because of a transient fault.

type Bytes = Redacted<Uint8Array>;

export type PullSecretChoice =
  | { readonly ok: true; readonly used: SourceName; readonly bytes: Bytes; readonly message: string }
  | { readonly ok: false; readonly message: string };

type Mounted = Pick<MountedSecret, 'bytes' | 'error'>;

/** Selects the pull secret to use, with upstream's message; `ok: false` when neither is usable. */
export function choosePullSecret(global: Mounted, original: Mounted): PullSecretChoice {
  if (global.error !== undefined)
    return { ok: false, message: `failed to read global pull secret from file: ${global.error.code}` };
  if (global.bytes !== undefined && reveal(global.bytes).length > 0)
    return accept('global', global.bytes, 'Global pull secret content found, using it');
  if (original.bytes === undefined) {
    const reason = original.error?.code ?? 'no such file or directory';
    return { ok: false, message: `failed to read original pull secret from file: ${reason}` };
  }
  const why = global.bytes === undefined ? 'not found' : 'is empty';
  return accept('original', original.bytes, `Global pull secret file ${why}, using original pull secret`);
}

function accept(used: SourceName, bytes: Bytes, message: string): PullSecretChoice {
  const fault = upstreamAgentFault(redact(Buffer.from(reveal(bytes)).toString('utf8')));
  if (fault === undefined) return { ok: true, used, bytes, message };
  return { ok: false, message: `failed to check and fix file: invalid docker config.json content: ${fault}` };
}

// Reads the mounted files of the two pull secrets.

/** Larger than any Secret. */
const MAX_BYTES = 4 << 20;

/** A pull secret from its mount or from the watch. */
export interface MountedSecret {
  readonly path: string;
  /** Absent when the Secret does not exist. Empty is treated the same. */
  readonly bytes?: Bytes | undefined;
  /** The mark of checked removals. */
  readonly judged?: string | undefined;
  /** Hashes of confirmed removals, from the Secret's annotation; a mount has no annotations. */
  readonly confirmed?: readonly string[] | undefined;
  /** Only from the watch. */
  readonly resourceVersion?: string | undefined;
  /** Read error. */
  readonly error?: PullwrightError;
}

/** Reads a mounted file. Follows symlinks, because kubelet mounts consist of them. */
export function readSource(path: string): MountedSecret {
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    const { size } = fstatSync(fd);
    if (size > MAX_BYTES)
      throw new PullwrightError(
        `Cannot read "${path}": it has ${size} bytes, expected at most ${MAX_BYTES}`,
        { code: 'SourceInvalid' },
      );
    const bytes = redact(new Uint8Array(readFileSync(fd)));
    return { path, bytes, judged: fileBeside(path, NAMES.judgedKey) };
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return { path };
    return { path, error: fileError('read', path, error) };
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Treats an unreadable file as missing. */
function fileBeside(path: string, name: string): string | undefined {
  try {
    return readFileSync(join(dirname(path), name), 'utf8').trim();
  } catch {
    return undefined;
  }
}

// Selects the pull secret in effect and its content: from the watch while it is current, else from the mounts.

export interface SecretPlaces {
  readonly globalFile: string;
  readonly originalFile: string;
  /** Reads a secret from the watch cache; returns undefined while unknown. @default no watch */
  readonly watched?: (name: SourceName) => WatchedSecret | undefined;
}

/** Digest of each mount while the watch was last open. */
export type Mounts = Map<SourceName, string>;

export interface ChosenSource {
  readonly from: SourceName;
  readonly document: AgentDocument;
  readonly source: MountedSecret;
}

/** Returns the source in effect with its content; undefined when both are mounted and neither exists. @throws PullwrightError */
export function chosenSource(options: SecretPlaces, mounts: Mounts): ChosenSource | undefined {
  const sources = {
    global: newest('global', options, mounts),
    original: newest('original', options, mounts),
  };
  const choice = choosePullSecret(sources.global, sources.original);
  const subject = (name: SourceName): string => `${name} pull secret "${sources[name].path}"`;
  if (choice.ok) {
    const from = choice.used;
    return { from, document: parseDocument(choice.bytes, subject(from)), source: sources[from] };
  }
  for (const name of ['global', 'original'] as const) {
    const { error, bytes } = sources[name];
    if (error !== undefined) throw error;
    const isLast = name === 'original';
    // Throws our own message for the fault; upstream's may quote the text.
    if (bytes !== undefined && (isLast || reveal(bytes).length > 0)) parseDocument(bytes, subject(name));
  }
  if (existsSync(dirname(options.originalFile)) && existsSync(dirname(options.globalFile))) return undefined;
  throw new PullwrightError(`Cannot read ${subject('original')}: it does not exist`, {
    code: 'SourceMissing',
    hint: 'Mount Secret kube-system/original-pull-secret there, optional if the cluster has none',
  });
}

/**
 * An open watch is ahead of the mount. With the watch closed, the mount is newer once it differs from its content at the time
 * when the watch was open.
 */
function newest(name: SourceName, options: SecretPlaces, mounts: Mounts): MountedSecret {
  const mount = readSource(options[`${name}File`]);
  const seen = options.watched?.(name);
  if (seen === undefined) return mount;
  const held =
    mount.bytes === undefined
      ? (mount.error?.code ?? 'absent')
      : createHash('sha256').update(reveal(mount.bytes)).digest('hex');
  if (seen.live) mounts.set(name, held);
  else if (mounts.get(name) !== held) return mount;
  const { live: _live, ...secret } = seen;
  return { path: mount.path, ...secret };
}
