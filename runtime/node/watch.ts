/**
 * Removes stale auth files, which hold credentials: CRI-O removes the file with the pull, but a pull that never happens leaves
 * it.
 *
 * Source of the rule: CRI-O's `namespaced_auth_dir`: `<namespace>-<sha256>.json`, moved to
 * `in-use/<namespace>-<sha256>-<uuid>.json` for the time of the pull.
 */
import { type FSWatcher, lstatSync, unlinkSync, watch } from 'node:fs';
import { namesIn } from './atomic-file.ts';
import type { Clock } from './clock.ts';

/** Folder of notes about runs of the provider that failed, beside the auth files. */
export const NOTES = 'failed';

const NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?-[0-9a-f]{64}(?:-[0-9a-f-]{36})?\.json$/;
/** Temporary file of a provider that was killed during a write. */
const TEMPORARY = /^\..*\.tmp-[0-9a-f-]+$/;

/** How long a file may wait for its pull. By default the kubelet pulls images one by one, and some are large. */
export const AUTH_FILE_LIFE_MS = 1_800_000;

/** A pull that takes longer than this has failed. */
const IN_USE_LIFE_MS = 10_800_000;

/**
 * Removes files in `folder` older than `ageMs`, and in its `in-use` those of failed pulls; returns their number. Also removes
 * notes of failed runs older than `ageMs`, not counted. Ignores names that neither the provider nor CRI-O writes, and missing
 * folders.
 */
export function removeStaleAuthFiles(folder: string, ageMs: number, nowMs: number): number {
  const inUseMs = Math.max(ageMs, IN_USE_LIFE_MS);
  // Not node:path: loading it is a noticeable part of a credential provider's 10 ms.
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
      // CRI-O moved it just now, or the disk is read-only: the next round retries.
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

// Wakes when a mounted volume changes. The kubelet swaps the link `..data` of the mount, which is an event on the folder. A slow
// poll covers file systems that send no events.

/** Debounce: a swap is several events. */
const GATHER_MS = 5;

export class Wake {
  readonly #folders: readonly string[];
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #clock: Clock;
  #changed = false;
  #tell: () => void = () => undefined;

  /** Watches `folders`. A folder that cannot be watched yet is polled, and retried with each wait. */
  constructor(folders: readonly string[], clock: Clock) {
    this.#clock = clock;
    this.#folders = folders;
    this.#watchAll();
  }

  #watchAll(): void {
    for (const folder of this.#folders) {
      if (this.#watchers.has(folder)) continue;
      try {
        const watcher = watch(folder, { persistent: false }, () => this.notice());
        watcher.on('error', () => {
          watcher.close();
          this.#watchers.delete(folder);
          this.notice();
        });
        this.#watchers.set(folder, watcher);
      } catch {
        // The path does not exist yet.
      }
    }
  }

  /** Ends the wait: a folder has changed, or the caller knows of a change. */
  notice(): void {
    this.#changed = true;
    this.#tell();
  }

  /** Waits for a change, `ms` or `signal`, then for the other events of the same swap. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    this.#watchAll();
    if (!this.#changed && !signal.aborted) await this.#sleep(ms, signal);
    if (this.#changed && !signal.aborted) await this.#clock.sleep(GATHER_MS, signal);
    this.#changed = false;
  }

  /** Not `AbortSignal.any`: each one would stay referenced by `signal` as long as the process lives. */
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
    for (const watcher of this.#watchers.values()) watcher.close();
  }
}
