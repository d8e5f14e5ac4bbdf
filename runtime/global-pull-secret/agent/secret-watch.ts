/**
 * The two pull secrets as the API server has them, watched by name: the kubelet brings a change to the mount only with its own
 * sync of the pod, a minute later. Whatever is wrong with the watch, the mount is there.
 */
import type { Clock } from '../../host/clock.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import { CONFIRM_REMOVAL, confirmedRemovals } from '../../rules/docker-config/removal-guard.ts';
import { describeError } from '../../rules/errors.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import { type Redacted, redact, reveal } from '../../rules/redacted.ts';
import type { Logger } from '../../telemetry/logger.ts';

/** Which of the two. */
export type SourceName = 'global' | 'original';

/** A secret as it was last seen. */
export interface WatchedSecret {
  /** Undefined: there is none. */
  readonly bytes: Redacted<Uint8Array> | undefined;
  /** The mark that its removals are judged. */
  readonly judged?: string | undefined;
  /** Removals that its annotation confirms. */
  readonly confirmed?: readonly string[];
  readonly resourceVersion?: string | undefined;
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

interface Seen {
  object: KubeObject | undefined;
  listed: boolean;
  live: boolean;
  /** When it was deleted, by the clock that is never set back. */
  goneAt: number | undefined;
}

export class SecretWatch {
  readonly #options: SecretWatchOptions;
  readonly #seen: Readonly<Record<SourceName, Seen>> = { global: unseen(), original: unseen() };
  readonly #stop = new AbortController();
  #informers: readonly Informer[] = [];
  #client: KubeClient | undefined;
  #filled: () => void = () => undefined;

  constructor(options: SecretWatchOptions) {
    this.#options = options;
  }

  /** Begins, and waits until both are known, but no longer than `ms`. Never rejects. */
  async open(ms: number): Promise<void> {
    const filled = new Promise<void>((resolve) => {
      this.#filled = resolve;
    });
    void this.#begin();
    const enough = new AbortController();
    await Promise.race([filled, this.#options.clock.sleep(ms, enough.signal)]);
    enough.abort();
  }

  /** Undefined as long as nobody knows. */
  read(name: SourceName): WatchedSecret | undefined {
    const { object, listed, live, goneAt } = this.#seen[name];
    if (!listed) return undefined;
    const gone = goneAt !== undefined && this.#options.clock.monotonic() - goneAt >= GONE_MS;
    if (object === undefined || gone) return { bytes: undefined, live };
    const confirms = object.metadata.annotations?.[CONFIRM_REMOVAL];
    return {
      bytes: valueOf(object, NAMES.dataKey),
      judged: textOf(object, NAMES.judgedKey),
      confirmed: typeof confirms === 'string' ? confirmedRemovals(confirms) : [],
      resourceVersion: object.metadata.resourceVersion,
      live,
    };
  }

  close(): void {
    this.#stop.abort();
    for (const informer of this.#informers) informer.stop();
    this.#client?.close();
  }

  async #begin(): Promise<void> {
    const { clock, log, client } = this.#options;
    while (!this.#stop.signal.aborted && this.#client === undefined) {
      try {
        this.#client = await client();
      } catch (error) {
        log.warn('Cannot watch the pull secrets: the mounts are read instead', {
          error: describeError(error),
        });
        await clock.sleep(60_000, this.#stop.signal);
      }
    }
    if (this.#client === undefined || this.#stop.signal.aborted) return;
    this.#informers = [this.#informer(this.#client, 'global'), this.#informer(this.#client, 'original')];
    for (const informer of this.#informers) void informer.run();
  }

  #informer(client: KubeClient, name: SourceName): Informer {
    const seen = this.#seen[name];
    const { log, changed } = this.#options;
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
    return new Informer({
      client,
      collection: { apiVersion: 'v1', kind: 'Secret', namespace: NAMES.namespace },
      selector: { fieldSelector: `metadata.name=${NAMES[name]}` },
      sink: {
        replace: ([object]) => set(object),
        set,
        delete: () => set(undefined),
        state: (state) => {
          seen.live = state.is === 'synced';
          if (state.is !== 'failing') return;
          const error = describeError(state.error);
          log.warn('Cannot watch the pull secrets: the mounts are read instead', {
            secret: NAMES[name],
            error,
          });
          changed();
        },
      },
    });
  }

  async #deleted(seen: Seen): Promise<void> {
    const { clock, changed } = this.#options;
    seen.goneAt ??= clock.monotonic();
    if (await clock.sleep(GONE_MS, this.#stop.signal)) changed();
  }
}

function unseen(): Seen {
  return { object: undefined, listed: false, live: false, goneAt: undefined };
}

function textOf(object: KubeObject, key: string): string | undefined {
  const value = valueOf(object, key);
  return value === undefined ? undefined : Buffer.from(reveal(value)).toString('utf8');
}

/** Without the key it is an empty file, as the mount would have none: the same as an absent one. */
function valueOf(object: KubeObject, key: string): Redacted<Uint8Array> | undefined {
  const value = (object as SecretObject).data?.[key];
  return value === undefined ? undefined : redact(new Uint8Array(Buffer.from(reveal(value), 'base64')));
}
