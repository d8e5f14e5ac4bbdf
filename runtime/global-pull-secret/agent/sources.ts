/**
 * The two pull secrets as the API server has them, watched by name: the kubelet brings a change to the mount only with its own
 * sync of the pod, a minute later. Whatever is wrong with the watch, the mount is there.
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

/** Which of the two. */
export type SourceName = 'global' | 'original';

/** A secret as the watch has it. */
export interface WatchedSecret extends Omit<MountedSecret, 'path'> {
  /** Whether the watch is open, so that nothing newer can be elsewhere. */
  readonly live: boolean;
}

export interface SecretWatchOptions {
  readonly client: () => Promise<KubeClient>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told after every change. */
  readonly changed: () => void;
}

/** A Secret that cannot be changed in place is deleted and made again: that must not cost the node its credentials. */
const GONE_MS = 500;

class Seen {
  object: KubeObject | undefined;
  listed = false;
  live = false;
  /** When it was deleted, by the clock that is never set back. */
  goneAt: number | undefined;
}

export class SecretWatch {
  readonly #options: SecretWatchOptions;
  readonly #seen: Readonly<Record<SourceName, Seen>> = { global: new Seen(), original: new Seen() };
  readonly #stop = new AbortController();
  #filled: () => void = () => undefined;

  constructor(options: SecretWatchOptions) {
    this.#options = options;
  }

  /** Begins, and waits until both are known, but no longer than `ms`. Never rejects. */
  async open(ms: number): Promise<void> {
    const filled = new Promise<void>((resolve) => {
      this.#filled = resolve;
    });
    const { client, clock } = this.#options;
    const watches = [this.#watch('global'), this.#watch('original')];
    void watchNamed(watches, client, (error) => this.#failed(error), this.#stop.signal, clock);
    const enough = new AbortController();
    await Promise.race([filled, clock.sleep(ms, enough.signal)]);
    enough.abort();
  }

  /** Undefined while unknown. */
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
      if (this.#seen.global.listed && this.#seen.original.listed) this.#filled();
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

// Which of the two mounted pull secrets the node uses.
// Source of the rule: requirement 1, "Node-level synchronization": the merged secret when it is there, else the copy of the
// platform's. A merged secret that cannot be read or is not a docker config stops the pass: falling back to the platform's
// secret would take the tenant's credentials from running nodes for a passing fault.

type Bytes = Redacted<Uint8Array>;

export type PullSecretChoice =
  | { readonly ok: true; readonly used: SourceName; readonly bytes: Bytes; readonly message: string }
  | { readonly ok: false; readonly message: string };

type Mounted = Pick<MountedSecret, 'bytes' | 'error'>;

/**
 * Chooses.
 */
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

// The mounted files of the two pull secrets, read whole.

/** Larger than any Secret can be. */
const MAX_BYTES = 4 << 20;

/** A pull secret as its mount, or the watch, has it. */
export interface MountedSecret {
  readonly path: string;
  /** Absent: there is none. Empty is the same. */
  readonly bytes?: Bytes | undefined;
  /** The mark beside it. */
  readonly judged?: string | undefined;
  /** Removals that its Secret confirms; a mount does not bring annotations. */
  readonly confirmed?: readonly string[] | undefined;
  /** Of its Secret, where it came from the watch. */
  readonly resourceVersion?: string | undefined;
  /** Why it cannot be read. */
  readonly error?: PullwrightError;
}

/** Follows links, because the kubelet's mounts are made of them. */
export function readSource(path: string): MountedSecret {
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    const { size } = fstatSync(fd);
    if (size > MAX_BYTES) throw tooLarge(path, size);
    const bytes = redact(new Uint8Array(readFileSync(fd)));
    return { path, bytes, judged: fileBeside(path, NAMES.judgedKey) };
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return { path };
    return { path, error: fileError('read', path, error) };
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** An unreadable file counts as missing. */
function fileBeside(path: string, name: string): string | undefined {
  try {
    return readFileSync(join(dirname(path), name), 'utf8').trim();
  } catch {
    return undefined;
  }
}

function tooLarge(path: string, size: number): PullwrightError {
  return new PullwrightError(`Cannot read "${path}": it has ${size} bytes, expected at most ${MAX_BYTES}`, {
    code: 'SourceInvalid',
  });
}

// Which of the two pull secrets is in effect, and its content: from the watch while it is ahead, else from the mounts.

export interface SecretPlaces {
  readonly globalFile: string;
  readonly originalFile: string;
  /** The secrets as the API server has them; undefined while unknown. @default not requested */
  readonly watched?: (name: SourceName) => WatchedSecret | undefined;
}

/** Content of the mounts at the last event of the watch. */
export type Mounts = Map<SourceName, string>;

export interface ChosenSource {
  readonly from: SourceName;
  readonly document: AgentDocument;
  readonly source: MountedSecret;
}

/** The source in effect, and its content; undefined where both are mounted and neither exists. */
export function chosenSource(options: SecretPlaces, mounts: Mounts): ChosenSource | undefined {
  const read = (name: SourceName): MountedSecret =>
    newest(name, readSource(options[`${name}File`]), options, mounts);
  const sources = { global: read('global'), original: read('original') };
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
    // Says in our words what is wrong with it, without a character of the text.
    if (bytes !== undefined && (isLast || reveal(bytes).length > 0)) parseDocument(bytes, subject(name));
  }
  if (existsSync(dirname(options.originalFile)) && existsSync(dirname(options.globalFile))) return undefined;
  throw new PullwrightError(`Cannot read ${subject('original')}: it does not exist`, {
    code: 'SourceMissing',
    hint: 'Mount Secret kube-system/original-pull-secret there, optional where the cluster has none',
  });
}

/**
 * The watch is ahead of the mount as long as it is open. When it is not, the mount is newer as soon as it holds something else
 * than it held while the watch was open.
 */
function newest(
  name: SourceName,
  mount: MountedSecret,
  { watched }: SecretPlaces,
  mounts: Mounts,
): MountedSecret {
  const seen = watched?.(name);
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
