/**
 * Requests by the fetch of Bun, for the credential provider alone: it needs no loading, while loading `node:https`
 * adds half the time of a whole run. It allows at most 256 concurrent requests: enough for a run, too few for watches.
 */
import { reveal } from '../core/redacted.ts';
import type { EngineRequest, HttpAnswer, HttpEngine, Route } from './request.ts';

/** Options of Bun's fetch in addition to the standard. */
interface BunRequestInit extends RequestInit {
  readonly tls: {
    readonly rejectUnauthorized: true;
    readonly ca?: string | readonly string[];
    readonly serverName?: string;
  };
  readonly proxy?: string;
  /** Without it, Bun ends a request after five minutes. */
  readonly timeout: false;
  /** The size limit applies to the bytes on the wire. */
  readonly decompress: false;
}

/** See {@link HttpEngine}. Bun's fetch obeys proxy variables itself, so they must be removed from the environment. */
export class FetchEngine implements HttpEngine {
  readonly #route: Route;

  constructor(route: Route) {
    this.#route = route;
  }

  async send({ method, url, origin, headers, body, halts }: EngineRequest): Promise<HttpAnswer> {
    const { ca, serverName, proxyFor } = this.#route;
    const control = new AbortController();
    const abort = (): void => control.abort();
    for (const halt of halts) halt.addEventListener('abort', abort, { once: true });
    const proxy = proxyFor?.(origin);
    const init: BunRequestInit = {
      method,
      headers,
      signal: control.signal,
      redirect: 'manual',
      timeout: false,
      decompress: false,
      tls: {
        // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment has no effect.
        rejectUnauthorized: true,
        ...(ca === undefined ? {} : { ca }),
        ...(serverName === undefined ? {} : { serverName }),
      },
      ...(proxy === undefined ? {} : { proxy: reveal(proxy) }),
      ...(body === undefined ? {} : { body }),
    };
    const over = (): void => {
      for (const halt of halts) halt.removeEventListener('abort', abort);
    };
    try {
      return new FetchAnswer(await fetch(url, init), control, over);
    } catch (error) {
      over();
      throw error;
    }
  }

  close(): void {
    // Connections belong to the runtime.
  }
}

class FetchAnswer implements HttpAnswer {
  readonly status: number;
  readonly #response: Response;
  readonly #control: AbortController;
  readonly #over: () => void;

  constructor(response: Response, control: AbortController, over: () => void) {
    this.status = response.status;
    this.#response = response;
    this.#control = control;
    this.#over = over;
  }

  get body(): AsyncIterable<Uint8Array> {
    return this.#response.body ?? nothing();
  }

  header(name: string): string | undefined {
    return this.#response.headers.get(name) ?? undefined;
  }

  async bytes(limitBytes: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let size = 0;
    try {
      for await (const part of this.body) {
        size += part.length;
        if (size > limitBytes) break;
        parts.push(part);
      }
    } catch (error) {
      this.discard();
      throw (await import('./http-error.ts')).torn(error);
    }
    if (size > limitBytes) {
      this.discard();
      throw (await import('./http-error.ts')).tooLarge(limitBytes);
    }
    this.#over();
    return Buffer.concat(parts, size);
  }

  discard(): void {
    this.#over();
    this.#control.abort();
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // A response without a body has no stream.
}
