/**
 * Requests by the fetch of Bun, for the credential provider alone: it needs no loading, while loading `node:https`
 * adds half the time of a whole run. It allows at most 256 concurrent requests: enough for a run, too few for watches.
 */
import { reveal } from '../core/redacted.ts';
import { tooLarge, torn } from './http-error.ts';
import type { EngineRequest, HttpAnswer, HttpEngine, Route } from './request.ts';

/** Options of Bun's fetch in addition to the standard. */
interface BunRequestInit extends RequestInit {
  readonly tls: {
    readonly rejectUnauthorized: true;
    readonly ca?: string | readonly string[];
    readonly serverName?: string;
  };
  /** `false`: none. Without the option, Bun obeys the proxy variables by its own rules, for example for loopback. */
  readonly proxy: string | false;
  /** Without it, Bun ends a request after five minutes. */
  readonly timeout: false;
  /** The size limit applies to the bytes on the wire. */
  readonly decompress: false;
}

/** See {@link HttpEngine}. */
export function fetchEngine({ ca, serverName, proxyFor }: Route): HttpEngine {
  const send = async ({ method, url, origin, headers, body, halts }: EngineRequest): Promise<HttpAnswer> => {
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
      proxy: proxy === undefined ? false : reveal(proxy),
      tls: {
        // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment has no effect.
        rejectUnauthorized: true,
        ...(ca === undefined ? {} : { ca }),
        ...(serverName === undefined ? {} : { serverName }),
      },
      ...(body === undefined ? {} : { body }),
    };
    const over = (): void => {
      for (const halt of halts) halt.removeEventListener('abort', abort);
    };
    try {
      return answerOf(await fetch(url, init), control, over);
    } catch (error) {
      over();
      throw error;
    }
  };
  // Connections belong to the runtime.
  return { send, close: () => undefined };
}

function answerOf(response: Response, control: AbortController, over: () => void): HttpAnswer {
  const stream = (): AsyncIterable<Uint8Array> => response.body ?? nothing();
  const discard = (): void => {
    over();
    control.abort();
  };
  const bytes = async (limitBytes: number): Promise<Uint8Array> => {
    const parts: Uint8Array[] = [];
    let size = 0;
    try {
      for await (const part of stream()) {
        size += part.length;
        if (size > limitBytes) throw tooLarge(limitBytes);
        parts.push(part);
      }
    } catch (error) {
      discard();
      throw torn(error);
    }
    over();
    return Buffer.concat(parts, size);
  };
  const header = (name: string): string | undefined => response.headers.get(name) ?? undefined;
  return {
    status: response.status,
    header,
    get body() {
      return stream();
    },
    bytes,
    discard,
  };
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // A response without a body has no stream.
}
