/** Puts the questions of `verify` to the registries, and shows how far it is. */
import { credentialsOf } from '../../registry/token.ts';
import { type Question, questionKey, verifyAll } from '../../registry/verify.ts';
import type { PullAttempt } from '../../rules/auth-lookup/pull-attempts.ts';
import type { EntryPlace } from '../../rules/diagnose/explain-types.ts';
import type { AskedImage } from '../../rules/diagnose/verify-report.ts';
import { GLOBAL_PULL_SECRET } from '../../rules/kubernetes/global-pull-secret.ts';
import type { CommandIo } from '../command.ts';
import { control } from '../people.ts';
import { type AccessValues, registryTransport } from '../registry-access.ts';
import type { ImageInUse } from './world.ts';

export interface AskOptions {
  /** Whether tenants chose the images, and not the person who asks. */
  readonly inUse: boolean;
  readonly flags: AccessValues;
  readonly concurrency: number;
  readonly io: CommandIo;
}

/** Asks for every attempt; the same credential at the same place is asked once. */
export async function askRegistries(
  users: readonly ImageInUse[],
  { inUse, flags, concurrency, io }: AskOptions,
): Promise<readonly AskedImage[]> {
  const { transport, timeoutMs } = await registryTransport(flags);
  const asked = users.map((user) => ({
    user,
    attempts: user.attempts.map((attempt) => ({ attempt, question: questionOf(attempt) })),
  }));
  const questions = asked.flatMap(({ attempts }) => attempts.flatMap(({ question }) => question ?? []));
  const total = new Set(questions.map(questionKey)).size;
  const known = platformHosts(users);
  const progress = progressOn(io, total);
  const answers = await verifyAll(questions, {
    transport,
    ...(inUse ? { chosenBy: (host) => (known.has(host) ? 'platform' : 'tenant') } : {}),
    concurrency,
    timeoutMs,
    signal: io.signal,
    onAnswer: progress.show,
  });
  transport.close();
  progress.end();
  return asked.map(({ user: { image, usedBy, blockedBy }, attempts }) => ({
    image,
    usedBy,
    ...(blockedBy === undefined ? {} : { blockedBy }),
    attempts: attempts.map(({ attempt, question }) => {
      const answer = question === undefined ? undefined : answers.get(questionKey(question));
      return { attempt, ...(answer === undefined ? {} : { answer }) };
    }),
  }));
}

/** Hosts that the platform names: its mirrors, and what its own credentials are for. */
function platformHosts(users: readonly ImageInUse[]): ReadonlySet<string> {
  const attempts = users.flatMap((user) => user.attempts);
  const own = attempts.filter(
    ({ kind, entry }) => kind === 'mirror' || (entry !== undefined && isOfPlatform(entry)),
  );
  return new Set(own.map(({ reference }) => reference.split('/')[0] ?? ''));
}

function isOfPlatform({ source }: EntryPlace): boolean {
  const [kind, namespace = ''] = source.split('/');
  return kind !== 'Secret' || PLATFORM_NAMESPACES.includes(namespace);
}

/** Of the Secrets that nodes' files are made from. */
const PLATFORM_NAMESPACES: readonly string[] = [GLOBAL_PULL_SECRET.namespace, 'openshift-config'];

function questionOf({ reference, credential, notAsked }: PullAttempt): Question | undefined {
  if (notAsked !== undefined) return undefined;
  return { reference, ...(credential === undefined ? {} : { credential: credentialsOf(credential) }) };
}

const BAR = 30;
/** Without a terminal, so many lines at most. */
const LINES = 10;

interface Progress {
  readonly show: (done: number) => void;
  readonly end: () => void;
}

/** A bar that is drawn over on a terminal; some lines elsewhere; nothing for a handful of questions. */
function progressOn(io: CommandIo, total: number): Progress {
  const tty = io.stderr.isTTY === true;
  if (tty)
    return {
      show: (done) => {
        const filled = Math.round((done / total) * BAR);
        io.stderr.write(
          `${control('\r')}[${'#'.repeat(filled)}${' '.repeat(BAR - filled)}] ${done}/${total}`,
        );
      },
      end: () => void (total > 0 && io.stderr.write(control('\r\u001b[K'))),
    };
  const step = Math.max(50, Math.ceil(total / LINES));
  return {
    show: (done) => void (done % step === 0 && io.stderr.write(`asked ${done} of ${total}\n`)),
    end: () => undefined,
  };
}
