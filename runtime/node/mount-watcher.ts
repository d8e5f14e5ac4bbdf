/**
 * Wakes when a mounted volume changes. The kubelet swaps the link `..data` of the mount, which shows as an event on the
 * folder; a slow poll is the net for events that a file system does not send.
 */
import { type FSWatcher, watch } from 'node:fs';
import type { Clock } from '../host/clock.ts';

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
        // It is not there yet.
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
