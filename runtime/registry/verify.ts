/** Asks registries what they think of credentials: each credential at each place once, in parallel up to a limit. */
import type { AddressPolicy } from '../http/addresses.ts';
import { parseImageReference } from '../rules/auth-lookup/image-reference.ts';
import { RegistryClient } from './client.ts';
import { HostMemory } from './host-memory.ts';
import { eachOf, type ProbeResult, probe } from './probe.ts';
import type { RegistryCredentials } from './token.ts';
import type { RegistryTransport } from './transport.ts';

/** One question. */
export interface Question {
  readonly reference: string;
  /** Absent: without a credential. */
  readonly credential?: RegistryCredentials;
}

export interface VerifyOptions {
  readonly transport: RegistryTransport;
  /** Who named a host (`host[:port]`). @default {always the platform} */
  readonly chosenBy?: (host: string) => AddressPolicy['chosenBy'];
  /** Questions at once. @default {16} */
  readonly concurrency?: number;
  /** For one answer, in milliseconds. @default {15_000} */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called after each answer with the number of answers so far. */
  readonly onAnswer?: (done: number) => void;
  /** Milliseconds of a clock that only goes forward. @default {performance.now} */
  readonly now?: () => number;
}

/** Identifies a question: equal ones are asked once. */
export function questionKey({ reference, credential }: Question): string {
  return `${reference} ${credential?.fingerprint ?? ''}`;
}

/**
 * Asks. Never rejects; each question has an answer, under its {@link questionKey}.
 *
 * A token is asked for once per repository and credential; a host that asks to wait, or that is silent, is spared.
 */
export async function verifyAll(
  questions: readonly Question[],
  options: VerifyOptions,
): Promise<ReadonlyMap<string, ProbeResult>> {
  const distinct = new Map(questions.map((question) => [questionKey(question), question]));
  const memory = new HostMemory(options.now ?? (() => performance.now()));
  const clients = new Map<string, RegistryClient>();
  const answers = new Map<string, ProbeResult>();
  await eachOf([...distinct], options.concurrency ?? 16, async ([key, question]) => {
    answers.set(key, await answer(question, { options, memory, clients }));
    options.onAnswer?.(answers.size);
  });
  return answers;
}

interface Run {
  readonly options: VerifyOptions;
  readonly memory: HostMemory;
  readonly clients: Map<string, RegistryClient>;
}

async function answer(question: Question, run: Run): Promise<ProbeResult> {
  const { reference, credential } = question;
  const parsed = parseImageReference(reference);
  const host = parsed.ok ? parsed.reference.domain : '';
  const fingerprint = credential?.fingerprint ?? '';
  const known = run.memory.get(host, fingerprint);
  if (known !== undefined) return { ...known, reference, message: `${known.message} (not asked again)` };
  const result = await probe(clientFor(credential, run), reference, run.options.signal);
  run.memory.set(host, fingerprint, result);
  return result;
}

/** One client a credential: its tokens are its own. */
function clientFor(credential: RegistryCredentials | undefined, { options, clients }: Run): RegistryClient {
  const id = credential?.fingerprint ?? '';
  const known = clients.get(id);
  if (known !== undefined) return known;
  const { transport, timeoutMs, chosenBy } = options;
  const client = new RegistryClient({
    transport,
    credentialFor: () => credential,
    ...(chosenBy === undefined ? {} : { chosenBy: ({ domain }) => chosenBy(domain) }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  clients.set(id, client);
  return client;
}
