/**
 * Records Events (events.k8s.io/v1). The name contains a hash of the content, so equal Events of all processes are one object:
 * repetitions become a series, and after a restart the existing Event is kept.
 */

import { hash } from 'node:crypto';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { remember } from '../core/record.ts';
import { withoutUserInfo } from '../core/text.ts';
import { isApiError } from './api-error.ts';
import type { KubeClient } from './client.ts';
import type { ObjectRef } from './resources.ts';

export interface EventInput {
  readonly regarding: ObjectRef & { readonly uid?: string | undefined };
  readonly type: 'Normal' | 'Warning';
  /** CamelCase, stable. */
  readonly reason: string;
  /** `Merge`, `Validate`, `Label`. */
  readonly action: string;
  readonly note: string;
}

export interface EventRecorderOptions {
  readonly client: KubeClient;
  /** `pullwright.dev/<reconciler>` */
  readonly controller: string;
  /** Reporting instance, such as the pod name. */
  readonly instance: string;
  readonly now: () => number;
}

/** A repetition after this time is not counted in a series: the API server deletes Events after an hour. */
const SERIES_MS = 6 * 60_000;
/** Maximum number of remembered Events. */
const REMEMBERED = 4096;
/** Burst of different Events per object, then one per {@link REFILL_MS}, as in client-go's spam filter. */
const BURST = 25;
const REFILL_MS = 300_000;
const MANAGER = 'pullwright-events';

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #known = new Map<string, { readonly at: number; readonly count: number }>();
  readonly #allowances = new Map<string, { readonly at: number; readonly tokens: number }>();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  /** Creates the Event, or updates its series. `known`: it already exists. `dropped`: rate limited. Rejects like the client. */
  async record(input: EventInput): Promise<'created' | 'repeated' | 'known' | 'dropped'> {
    const name = eventName(input);
    const now = this.#options.now();
    const known = this.#known.get(name);
    if (known !== undefined && now - known.at < SERIES_MS) return this.#repeat(input, name, known.count + 1);
    if (!this.#allowed(input, now)) return 'dropped';
    remember(this.#known, name, { at: now, count: 1 }, REMEMBERED);
    try {
      await this.#options.client.create(this.#eventObject(input, name), MANAGER);
      return 'created';
    } catch (error) {
      if (isApiError(error, 409)) return 'known';
      this.#known.delete(name);
      throw error;
    }
  }

  async #repeat(input: EventInput, name: string, count: number): Promise<'repeated' | 'created'> {
    remember(this.#known, name, { at: this.#options.now(), count }, REMEMBERED);
    const namespace = namespaceOf(input);
    const series = { count, lastObservedTime: microTime(this.#options.now()) };
    try {
      const ref = { apiVersion: 'events.k8s.io/v1', kind: 'Event', namespace, name };
      await this.#options.client.mergePatch(ref, { series }, MANAGER);
      return 'repeated';
    } catch (error) {
      if (!isApiError(error, 404)) throw error;
      await this.#options.client.create(this.#eventObject(input, name), MANAGER);
      return 'created';
    }
  }

  #allowed({ regarding }: EventInput, now: number): boolean {
    const id = `${regarding.kind} ${regarding.namespace ?? ''} ${regarding.name}`;
    const before = this.#allowances.get(id) ?? { tokens: BURST, at: now };
    const tokens = Math.min(BURST, before.tokens + Math.max(0, now - before.at) / REFILL_MS);
    remember(this.#allowances, id, { tokens: Math.max(0, tokens - 1), at: now }, REMEMBERED);
    return tokens >= 1;
  }

  #eventObject(input: EventInput, name: string): KubeObject {
    const { controller, instance, now } = this.#options;
    const { regarding, type, reason, action } = input;
    return {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name, namespace: namespaceOf(input) },
      eventTime: microTime(now()),
      reportingController: controller,
      reportingInstance: instance.slice(0, 128),
      action: action.slice(0, 128),
      reason: reason.slice(0, 128),
      type,
      note: noteOf(withoutUserInfo(input.note)),
      regarding,
    };
  }
}

/** The API server rejects a note of more than 1024 bytes. */
function noteOf(text: string): string {
  const bytes = Buffer.from(text);
  return bytes.length > 1024
    ? `${new TextDecoder().decode(bytes.subarray(0, 1021), { stream: true })}...`
    : text;
}

function eventName({ regarding, type, reason, action, note }: EventInput): string {
  const { apiVersion, kind, uid } = regarding;
  const text = JSON.stringify([apiVersion, kind, uid, type, reason, action, note]);
  return `${regarding.name.toLowerCase().slice(0, 230)}.${hash('sha256', text).slice(0, 16)}`;
}

/** Events of cluster-scoped objects are in `default`, where kubectl looks for them. */
function namespaceOf({ regarding }: EventInput): string {
  return regarding.namespace ?? 'default';
}

/** Formats a `MicroTime` of the API. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
