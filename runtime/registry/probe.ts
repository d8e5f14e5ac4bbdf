/** Probes registries for images: in parallel up to a limit, each with its own deadline. */
import { parseImageReference } from '../core/image-reference.ts';
import { inParallel } from '../core/parallel.ts';
import type { AddressPolicy } from '../http/addresses.ts';
import { RegistryClient } from './client.ts';
import type { RegistryCredentials } from './token.ts';
import { RegistryError, type RegistryFailure, type RegistryTransport } from './transport.ts';

export type ProbeVerdict = 'Valid' | RegistryFailure;

export interface ProbeResult {
  readonly reference: string;
  readonly verdict: ProbeVerdict;
  /** One sentence for people, without credentials. */
  readonly message: string;
  readonly digest?: string;
  readonly retryAfterSeconds?: number;
  /** The host did not respond at all. */
  readonly silence?: true;
}

/**
 * Requests the manifest of `reference`. Never rejects.
 *
 * @param signal aborts the probe; then the verdict is `Unreachable`
 */
export async function probe(
  client: RegistryClient,
  reference: string,
  signal?: AbortSignal,
): Promise<ProbeResult> {
  const parsed = parseImageReference(reference);
  if (!parsed.ok) return { reference, verdict: 'NotFound', message: parsed.goText };
  try {
    const digest = await client.headManifest(parsed.reference, signal);
    return { reference, verdict: 'Valid', message: digest, digest };
  } catch (error) {
    if (!(error instanceof RegistryError))
      return { reference, verdict: 'Unreachable', message: 'unreadable response' };
    const { failure, message, retryAfterSeconds, silence } = error;
    return {
      reference,
      verdict: failure,
      message,
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      ...(silence ? { silence } : {}),
    };
  }
}

/** Probes at the same time. */
const AT_ONCE = 16;

/** Probes each reference once. @returns the answers by reference */
export async function probeAll(
  client: RegistryClient,
  references: readonly string[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, ProbeResult>> {
  const distinct = [...new Set(references)];
  const answers = await inParallel(distinct, AT_ONCE, (reference) => probe(client, reference, signal));
  return new Map(answers.map((answer) => [answer.reference, answer]));
}

// After "too many requests", and after some consecutive requests without a response, further probes of the same host and
// credential are answered from memory, for a bounded time.
// Source of the rule: `Retry-After` of RFC 9110, bounded, because a tenant's registry may request any delay.
// Otherwise a registry that is down would cost a timeout for each of hundreds of images, and a registry that limits requests
// would get more of them. Nothing is stored between runs.

/** Consecutive failures to connect, after which a host counts as silent. */
const SILENT_AFTER = 3;
const REMEMBER_MS = 60_000;
const DEFAULT_WAIT_MS = 10_000;

export class HostMemory {
  readonly #silences = new Map<string, number>();
  readonly #answers = new Map<string, { readonly answer: ProbeResult; readonly until: number }>();
  readonly #now: () => number;

  /** `now` returns milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Cached verdict on `host`; undefined when it should be probed. */
  get(host: string, fingerprint: string): ProbeResult | undefined {
    const known = [host, `${host} ${fingerprint}`].map((key) => this.#answers.get(key));
    return known.find((one) => one !== undefined && one.until > this.#now())?.answer;
  }

  /** Records an answer. */
  set(host: string, fingerprint: string, answer: ProbeResult): void {
    if (answer.verdict === 'RateLimited') {
      const waitMs =
        answer.retryAfterSeconds === undefined ? DEFAULT_WAIT_MS : answer.retryAfterSeconds * 1000;
      const until = this.#now() + Math.min(waitMs, REMEMBER_MS);
      this.#answers.set(`${host} ${fingerprint}`, { answer, until });
      return;
    }
    const silences = answer.silence === undefined ? 0 : (this.#silences.get(host) ?? 0) + 1;
    this.#silences.set(host, silences);
    if (silences >= SILENT_AFTER) this.#answers.set(host, { answer, until: this.#now() + REMEMBER_MS });
    else this.#answers.delete(host);
  }
}

// Probes registries with credentials: each credential at each repository once, in parallel up to a limit.

/** One image to probe with one credential. */
export interface Question {
  readonly reference: string;
  /** @default {none: anonymous} */
  readonly credential?: RegistryCredentials;
}

export interface VerifyOptions {
  readonly transport: RegistryTransport;
  /** Who chose a host (`host[:port]`). @default {always the platform} */
  readonly chosenBy?: (host: string) => AddressPolicy['chosenBy'];
  /** Probes at the same time. @default {16} */
  readonly concurrency?: number;
  /** Timeout of a request, in milliseconds. @default {15_000} */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called after each answer with the number of answers so far. */
  readonly onAnswer?: (done: number) => void;
}

/** Identifies a probe: equal ones are sent once. */
export function questionKey({ reference, credential }: Question): string {
  return `${reference} ${credential?.fingerprint ?? ''}`;
}

/**
 * Probes each question. Never rejects; each question has an answer, under its {@link questionKey}.
 *
 * A token is requested once per repository and credential; a host that is rate limiting or silent is skipped.
 */
export async function verifyAll(
  questions: readonly Question[],
  options: VerifyOptions,
): Promise<ReadonlyMap<string, ProbeResult>> {
  const distinct = new Map(questions.map((question) => [questionKey(question), question]));
  const { transport, timeoutMs, chosenBy, signal } = options;
  const memory = new HostMemory(() => performance.now());
  // One client for each credential, because tokens belong to a credential.
  const clients = new Map<string, RegistryClient>();
  const answer = async ({ reference, credential }: Question): Promise<ProbeResult> => {
    const parsed = parseImageReference(reference);
    const host = parsed.ok ? parsed.reference.domain : '';
    const fingerprint = credential?.fingerprint ?? '';
    const known = memory.get(host, fingerprint);
    if (known !== undefined) return { ...known, reference, message: `${known.message} (cached result)` };
    const client =
      clients.get(fingerprint) ??
      new RegistryClient({
        transport,
        credentialFor: () => credential,
        chosenBy: chosenBy && (({ domain }) => chosenBy(domain)),
        timeoutMs,
      });
    clients.set(fingerprint, client);
    const result = await probe(client, reference, signal);
    memory.set(host, fingerprint, result);
    return result;
  };
  const answers = new Map<string, ProbeResult>();
  await inParallel([...distinct], options.concurrency ?? AT_ONCE, async ([key, question]) => {
    answers.set(key, await answer(question));
    options.onAnswer?.(answers.size);
  });
  return answers;
}
