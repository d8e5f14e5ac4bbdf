/** Request, response, and the engine that carries both. */
import type { Redacted } from '../core/redacted.ts';

/** The client certificate. */
export interface Identity {
  /** PEM. */
  readonly certificate?: string | undefined;
  /** PEM. */
  readonly key?: Redacted<string> | undefined;
}

export interface HttpRequest {
  readonly method: string;
  /** Whole and encoded, such as `new URL(text).href` gives it. `http:` only to hosts that the client may contact without TLS. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Ends the request, and the body of its answer. */
  readonly signal?: AbortSignal | undefined;
  /** Until the head of the response has arrived, or all of it where the whole is requested. Absent: no limit. */
  readonly timeoutMs?: number;
  readonly identity?: Identity;
  /** How many redirects are followed; without, a redirect is an answer like any other. @default {0} */
  readonly redirects?: number;
  /** Whether the request is idempotent: it is sent again when a kept connection turns out to be closed. @default {GET and HEAD} */
  readonly repeatable?: boolean;
  /** Called right before the request is sent, after all waiting; if it throws, nothing is sent. */
  readonly fence?: (() => void) | undefined;
}

/** The head of an answer, with its body still to come. Every status is an answer. */
export interface HttpAnswer {
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  /** The body as it arrives, in the encoding of the server. */
  readonly body: AsyncIterable<Uint8Array>;
  /** The whole body. Rejects, and ends the connection, as soon as more than `limitBytes` have arrived. */
  bytes(limitBytes: number): Promise<Uint8Array>;
  /** The body is not needed: the connection is closed or reused. */
  discard(): void;
}

/** A response with its whole body. */
export interface WholeAnswer {
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  readonly text: string;
}

/** One request as an engine gets it. */
export interface EngineRequest extends HttpRequest {
  /** `https://host:port` of the URL. */
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Connect to this address in place of the host's own. TLS and the header `host` stay with the URL. */
  readonly address?: string | undefined;
  /** Any of them ends the request and the body of its answer. */
  readonly halts: readonly AbortSignal[];
}

/** What moves the bytes. Rejects with the error of its runtime. */
export interface HttpEngine {
  send(request: EngineRequest): Promise<HttpAnswer>;
  /** Ends kept connections. They do not keep the process alive. */
  close(): void;
}

/** Trusted authorities and proxy. TLS is always verified: no option and no variable turns that off. */
export interface Route {
  /** PEM of the authorities to trust; absent: those of the system. */
  readonly ca?: string | readonly string[] | undefined;
  /** Name to verify instead of the URL's host. */
  readonly serverName?: string | undefined;
  /** The proxy for an origin (`https://host:port`); undefined to go without. Servers without TLS are never proxied. */
  readonly proxyFor?: ((origin: string) => Redacted<string> | undefined) | undefined;
}
