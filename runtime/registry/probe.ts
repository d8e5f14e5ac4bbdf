/** Asks registries whether images are there: in parallel up to a limit, each with its own deadline. */
import { parseImageReference } from '../rules/auth-lookup/image-reference.ts';
import type { RegistryClient } from './client.ts';
import { RegistryError, type RegistryFailure } from './registry-error.ts';

export type ProbeVerdict = 'Valid' | RegistryFailure;

export interface ProbeResult {
  readonly reference: string;
  readonly verdict: ProbeVerdict;
  /** One sentence for a person; never a value of a credential. */
  readonly message: string;
  readonly digest?: string;
  readonly retryAfterSeconds?: number;
  /** Nobody answered at all. */
  readonly silence?: true;
}

/**
 * Asks for the manifest of `reference`. Never rejects.
 *
 * @param signal ends the question; then the verdict is `Unreachable`
 */
export async function probe(
  client: RegistryClient,
  reference: string,
  signal?: AbortSignal,
): Promise<ProbeResult> {
  const parsed = parseImageReference(reference);
  if (!parsed.ok) return { reference, verdict: 'NotFound', message: parsed.goText };
  try {
    const { digest } = await client.headManifest(parsed.reference, signal);
    return { reference, verdict: 'Valid', message: digest, digest };
  } catch (error) {
    if (!(error instanceof RegistryError))
      return { reference, verdict: 'Unreachable', message: 'no answer that can be read' };
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

export interface RegistryProbeOptions {
  /** Questions at once. @default {16} */
  readonly concurrency?: number;
  readonly signal?: AbortSignal;
  /** Called after each answer. */
  readonly onResult?: (result: ProbeResult, done: number) => void;
}

/** Asks for each reference once; the answers are in the order of the questions. */
export async function probeAll(
  client: RegistryClient,
  references: readonly string[],
  options: RegistryProbeOptions = {},
): Promise<readonly ProbeResult[]> {
  const answers = new Map<string, ProbeResult>();
  await eachOf([...new Set(references)], options.concurrency ?? 16, async (reference) => {
    const result = await probe(client, reference, options.signal);
    answers.set(reference, result);
    options.onResult?.(result, answers.size);
  });
  return references.flatMap((reference) => answers.get(reference) ?? []);
}

/** Does `work` for each item, at most `limit` at once. */
export async function eachOf<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  const worker = async (): Promise<void> => {
    for (const item of rest) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
}
