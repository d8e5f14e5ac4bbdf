/** Request, response, and the engine that carries both. */
import type { Redacted } from '../core/redacted.ts';

/** A client certificate. */
export interface Identity {
  /** PEM. */
  readonly certificate?: string | undefined;
  /** PEM. */
  readonly key?: Redacted<string> | undefined;
}

export interface HttpRequest {
  readonly method: string;
  /** Absolute and encoded, such as `new URL(text).href`. `http:` only for hosts that may be contacted without TLS. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Aborts the request, and the body of its response. */
  readonly signal?: AbortSignal | undefined;
  /** Timeout for the head of the response, or for all of it if the whole is requested. @default {no limit} */
  readonly timeoutMs?: number;
  readonly identity?: Identity;
  /** Maximum number of redirects to follow; one more is an error. @default {a redirect is the response} */
  readonly redirects?: number;
  /** Whether the request is idempotent, so that it is resent if a kept connection was closed. @default {GET and HEAD} */
  readonly repeatable?: boolean;
  /** Called right before the request is sent, after all waiting; if it throws, nothing is sent. */
  readonly fence?: (() => void) | undefined;
}

/** The head of a response, whose body is not read yet. Any status is a response. */
export interface HttpAnswer {
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  /** The body as a stream, in the encoding of the server. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Reads the whole body. Rejects and closes the connection after more than `limitBytes`. */
  bytes(limitBytes: number): Promise<Uint8Array>;
  /** Discards the body: the connection is closed or reused. */
  discard(): void;
}

/** A response with its whole body. */
export interface WholeAnswer extends Pick<HttpAnswer, 'status' | 'header'> {
  readonly text: string;
}

/** A request for an engine. */
export interface EngineRequest extends HttpRequest {
  /** `https://host:port` of the URL. */
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Address to connect to, instead of resolving the host. TLS and the header `host` still use the URL. */
  readonly address?: string | undefined;
  /** Each aborts the request and the body of its response. */
  readonly halts: readonly AbortSignal[];
}

/** Sends requests. Rejects with errors of the runtime. */
export interface HttpEngine {
  send(request: EngineRequest): Promise<HttpAnswer>;
  /** Ends kept connections. They do not keep the process alive. */
  close(): void;
}

/** Trusted authorities and proxy. TLS is always verified; no option or variable disables it. */
export interface Route {
  /** PEM of the authorities to trust; absent: those of the system. */
  readonly ca?: string | readonly string[] | undefined;
  /** Name to verify instead of the URL's host. */
  readonly serverName?: string | undefined;
  /** The proxy for an origin (`https://host:port`); undefined to go without. Servers without TLS are never proxied. */
  readonly proxyFor?: ((origin: string) => Redacted<string> | undefined) | undefined;
}
