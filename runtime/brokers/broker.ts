/** What the adapter and Sentinel want of a broker. */
import type { WireMessage } from './cloud-event.ts';

/** `done`: off the queue. `again`: to be delivered again. `dead`: to the dead letters, with a reason. */
export type Handled =
  | { readonly outcome: 'done' }
  | { readonly outcome: 'again' }
  | { readonly outcome: 'dead'; readonly reason: string };

/** Never throws; what cannot be done now answers `again`. */
export type Handler = (message: WireMessage) => Promise<Handled>;

export interface Consumer {
  /** Whether messages are being taken right now. */
  connected(): boolean;
  /** Takes no more messages, waits for those being handled, closes; a broker that does not answer is not waited for. Never throws. */
  close(): Promise<void>;
}

export interface Publisher {
  /** Resolves once the broker has it, and rejects after half a minute without an answer. */
  publish(message: { readonly id: string; readonly body: string }): Promise<void>;
  /** Whether the broker takes events right now. */
  connected(): boolean;
  /** Never throws. */
  close(): Promise<void>;
}

export type BrokerNote = (
  level: 'info' | 'warn',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;
