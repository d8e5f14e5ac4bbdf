/**
 * Removes auth files that CRI-O was given for one pull and that nothing used: the runtime takes the file of a pull away, but a
 * pull that never came leaves it, and it holds credentials.
 *
 * Source of the rule: CRI-O's `namespaced_auth_dir`: `<namespace>-<sha256>.json`, moved to `in-use/<namespace>-<sha256>-<uuid>.json`
 * for the time of the pull.
 */
import { type FSWatcher, lstatSync, unlinkSync, watch } from 'node:fs';
import { namesIn } from './atomic-file.ts';
import type { Clock } from './clock.ts';

/** Folder of notes about runs of the provider that failed, beside the auth files. */
export const NOTES = 'failed';

const NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?-[0-9a-f]{64}(?:-[0-9a-f-]{36})?\.json$/;
/** Left by a provider that was killed while it wrote. */
const TEMPORARY = /^\..*\.tmp-[0-9a-f-]+$/;

/** How long a file waits for its pull. The kubelet pulls one image after the other, as a rule, and some are large. */
export const AUTH_FILE_LIFE_MS = 1_800_000;

/** A pull that takes longer than this has failed. */
export const IN_USE_LIFE_MS = 10_800_000;

/**
 * Removes files of `folder` that are older than `ageMs`, and of its `in-use` than `inUseMs`, and gives how many that were. Notes
 * of runs that failed go with the former, uncounted. Only names that the provider and CRI-O make are touched; a folder that is
 * not there is fine.
 */
export function removeStaleAuthFiles(
  folder: string,
  ageMs: number,
  nowMs: number,
  inUseMs: number = ageMs,
): number {
  // By hand: node:path is felt in a credential provider that lives 10 ms.
  removeIn(`${folder}/${NOTES}`, ageMs, nowMs);
  return removeIn(folder, ageMs, nowMs) + removeIn(`${folder}/in-use`, inUseMs, nowMs);
}

function removeIn(folder: string, ageMs: number, nowMs: number): number {
  let removed = 0;
  for (const name of namesIn(folder)) {
    if (!NAME.test(name) && !TEMPORARY.test(name)) continue;
    const path = `${folder}/${name}`;
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined || !stat.isFile() || nowMs - stat.mtimeMs < ageMs) continue;
    try {
      unlinkSync(path);
      removed += 1;
    } catch {
      // CRI-O took it just now, or the disk is read-only: the next round looks again.
    }
  }
  return removed;
}

/** Age of the oldest auth file that waits for its pull in `folder`, in milliseconds; 0 when there is none. */
export function oldestAuthFileMs(folder: string, nowMs: number): number {
  const files = namesIn(folder)
    .filter((name) => NAME.test(name))
    .map((name) => lstatSync(`${folder}/${name}`, { throwIfNoEntry: false }));
  return nowMs - Math.min(nowMs, ...files.map((stat) => (stat?.isFile() === true ? stat.mtimeMs : nowMs)));
}

// Wakes when a mounted volume changes. The kubelet swaps the link `..data` of the mount, which shows as an event on the
// folder; a slow poll is the net for events that a file system does not send.

/** A swap is several events; they are answered together. */
const GATHER_MS = 5;

export class Wake {
  readonly #watchers: (FSWatcher | undefined)[];
  readonly #clock: Clock;
  #changed = false;
  #tell: () => void = () => undefined;

  /** Watches `folders`. One that cannot be watched (yet) is left to the poll and tried again with each wait. */
  constructor(folders: readonly string[], clock: Clock) {
    this.#clock = clock;
    this.#watchers = folders.map(() => undefined);
    this.#folders = folders;
    this.#watchAll();
  }

  readonly #folders: readonly string[];

  #watchAll(): void {
    for (const [index, folder] of this.#folders.entries()) {
      if (this.#watchers[index] !== undefined) continue;
      try {
        const watcher = watch(folder, { persistent: false }, () => this.notice());
        watcher.on('error', () => this.#drop(index));
        this.#watchers[index] = watcher;
      } catch {
        // It does not exist yet.
      }
    }
  }

  #drop(index: number): void {
    this.#watchers[index]?.close();
    this.#watchers[index] = undefined;
    this.notice();
  }

  /** Ends the wait: a folder has changed, or what the caller knows of. */
  notice(): void {
    this.#changed = true;
    this.#tell();
  }

  /** Waits for a change, `ms`, or `signal`; then until the events of one swap have come in. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    this.#watchAll();
    if (!this.#changed && !signal.aborted) await this.#sleep(ms, signal);
    if (this.#changed && !signal.aborted) await this.#clock.sleep(GATHER_MS, signal);
    this.#changed = false;
  }

  /** `AbortSignal.any` would do, but each one stays with `signal` for as long as the process lives. */
  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const end = (): void => stop.abort();
    this.#tell = end;
    signal.addEventListener('abort', end);
    await this.#clock.sleep(ms, stop.signal);
    signal.removeEventListener('abort', end);
    this.#tell = () => undefined;
  }

  close(): void {
    for (const watcher of this.#watchers) watcher?.close();
  }
}
