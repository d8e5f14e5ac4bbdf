/**
 * Evaluates the registries' answers: a verdict for each credential at each pull source, for each credential, and for each image.
 *
 * A pull source without the image is acceptable if another one has it: mirrors may be incomplete. A rejected credential is a
 * fault even if another one works: it is still sent, and counts against rate limits.
 */

import { credentialExpiry } from '../../core/docker-config/expiry.ts';
import { shellWord } from '../../core/text.ts';
import { firstBroken, judge } from '../checks/findings.ts';
import { endingTold, renewing } from '../checks/status.ts';
import type { PullAttempt } from './attempts.ts';
import type { EntryPlace, Finding } from './types.ts';

export const VERDICTS = [
  'Expired',
  'Invalid',
  'Forbidden',
  'RateLimited',
  'Unreachable',
  'NotFound',
  'NotAsked',
  'Valid',
] as const;

/** Worst first. */
export type PullVerdict = (typeof VERDICTS)[number];

/** A registry's answer, or the error that prevented one. */
interface RegistryAnswer {
  readonly verdict: string;
  /** Never contains a credential value. */
  readonly message: string;
}

/** The registry's answer to each attempt; without one it was not asked. */
export type RegistryAnswers = ReadonlyMap<PullAttempt, RegistryAnswer | undefined>;

/** An image in use, with all attempts to pull it. */
export interface ImageInUse {
  readonly image: string;
  /** One of its users, such as `Deployment/web/shop`. */
  readonly usedBy: string;
  readonly attempts: readonly PullAttempt[];
  /** Findings of `explain` that do not depend on registry answers. */
  readonly findings: readonly Finding[];
}

/** An attempt with its answer. */
export interface VerifiedAttempt extends Pick<PullAttempt, 'reference' | 'kind'> {
  /** Key and source: `Secret/web/pull`, or the node's file. For a merged entry, its source Secret. */
  readonly credential?: Pick<EntryPlace, 'source' | 'key'>;
  readonly verdict: PullVerdict;
  readonly message: string;
}

export type VerifyReport = ReturnType<typeof verifyReport>;
export type VerifiedImage = VerifyReport['images'][number];
export type VerifiedCredential = VerifyReport['credentials'][number];

/** Evaluates all answers as of `now`. Never throws. */
export function verifyReport(users: readonly ImageInUse[], answers: RegistryAnswers, now: Date) {
  const attempts = users.flatMap((user) => user.attempts);
  const verified = new Map(attempts.map((one) => [one, verifiedAttempt(one, answers.get(one), now)]));
  const byCredential = Map.groupBy(verified, ([, { credential }]) => credential && key(credential));
  return {
    /** RFC 3339, whole seconds. */
    checkedAt: `${now.toISOString().slice(0, 19)}Z`,
    images: users.map((user) => verifiedImage(user, verified)),
    /** Worst first. */
    credentials: [...byCredential.values()]
      .flatMap(worstOf)
      .toSorted(
        (a, b) => VERDICTS.indexOf(a.verdict) - VERDICTS.indexOf(b.verdict) || (key(a) < key(b) ? -1 : 1),
      ),
  };
}

function verifiedAttempt(
  { reference, kind, entry, credential, notAsked }: PullAttempt,
  answer: RegistryAnswer | undefined,
  now: Date,
): VerifiedAttempt {
  const place = entry && { source: entry.origin ?? entry.source, key: entry.key };
  const one = { reference, kind, ...(place && { credential: place }) };
  if (answer === undefined) return { ...one, verdict: 'NotAsked', message: notAsked ?? 'was not checked' };
  const verdict = VERDICTS.find((known) => known === answer.verdict) ?? 'Unreachable';
  const { expiresAt } = credential === undefined ? {} : credentialExpiry(credential);
  const over = expiresAt !== undefined && Date.parse(expiresAt) <= now.getTime();
  return verdict === 'Invalid' && over
    ? { ...one, verdict: 'Expired', message: `expired at ${expiresAt}: ${answer.message}` }
    : { ...one, verdict, message: answer.message };
}

function verifiedImage(
  { attempts: all, ...user }: ImageInUse,
  verified: ReadonlyMap<PullAttempt, VerifiedAttempt>,
) {
  const attempts = all.flatMap((one) => verified.get(one) ?? []);
  const isBroken = firstBroken(user.findings) !== undefined;
  const pullable = isBroken ? 'no' : pullableBy(attempts);
  const none: Finding = {
    check: 'registry',
    severity: 'error',
    subject: user.image,
    message: 'no pull source serves this image',
    advice: `Run ${whyCommand(user)} with the same --from or --context`,
  };
  return {
    ...user,
    attempts,
    /** Whether a pull source has the image; `unknown` if none is known to, and some were not asked or rate-limited. */
    pullable,
    /** Findings of `explain`; if none is an error, also one for an image without a working pull source. */
    findings: pullable === 'no' && !isBroken ? [...user.findings, none] : user.findings,
  };
}

function pullableBy(attempts: readonly VerifiedAttempt[]): 'yes' | 'no' | 'unknown' {
  if (attempts.some(({ verdict }) => verdict === 'Valid')) return 'yes';
  const isUnsure = attempts.some(({ verdict }) => verdict === 'NotAsked' || verdict === 'RateLimited');
  return isUnsure ? 'unknown' : 'no';
}

/** Returns a credential with its worst answer by {@link rank}; empty for anonymous attempts. */
function worstOf(attempts: readonly (readonly [PullAttempt, VerifiedAttempt])[]) {
  const [worst] = attempts.toSorted(([, a], [, b]) => rank(a.verdict) - rank(b.verdict));
  if (worst?.[1].credential === undefined) return [];
  const [{ credential }, { credential: place, verdict, message }] = worst;
  const { kind, expiresAt } = credential ? credentialExpiry(credential) : { kind: 'lasting' };
  return [
    {
      ...place,
      verdict,
      message,
      ...(expiresAt === undefined ? {} : { expiresAt }),
      kindOfCredential: kind,
      images: attempts.length,
    },
  ];
}

/** Ranks `NotFound` last: it only shows that the credential was accepted. */
function rank(verdict: PullVerdict): number {
  return verdict === 'NotFound' ? VERDICTS.length : VERDICTS.indexOf(verdict);
}

function key({ source, key: written }: Pick<EntryPlace, 'source' | 'key'>): string {
  return `${source}\n${written}`;
}

/** Returns the command that explains the failing pull, for the workload or ServiceAccount that uses the image. */
export function whyCommand({ image, usedBy }: Pick<ImageInUse, 'image' | 'usedBy'>): string {
  const [kind = '', namespace = '', name = ''] = usedBy.split('/').map(shellWord);
  return kind === 'ServiceAccount'
    ? `pullwright explain ${shellWord(image)} -n ${namespace} --service-account ${name}`
    : `pullwright doctor ${kind.toLowerCase()}/${name} -n ${namespace}`;
}

/** Finds credentials that are rejected, have expired, or expire within `warnDays` days. */
export function judgeCredentials(report: VerifyReport, warnDays: number): readonly Finding[] {
  const refused = report.credentials.filter(isRefused).map(({ key, source, message }) => ({
    subject: source,
    message: `"${key}" ${message}`,
    advice: renewing(source),
  }));
  const ending = endingSoon(report, warnDays).map((one) =>
    endingTold(one, Date.parse(one.expiresAt ?? '') <= Date.parse(report.checkedAt) ? 'expired' : 'expiring'),
  );
  return judge([{ id: 'credential', run: () => [...refused, ...ending] }], report);
}

/** Reports whether a registry rejects the credential. */
export function isRefused({ verdict }: { readonly verdict: PullVerdict }): boolean {
  return ['Expired', 'Invalid', 'Forbidden'].includes(verdict);
}

/** Reports whether action is required: a credential is rejected, or an image cannot be pulled. */
export function wantsAttention({ images, credentials }: VerifyReport): boolean {
  return images.some((image) => image.pullable === 'no') || credentials.some(isRefused);
}

/** Credentials that expire within `days` of the report, or have expired. */
export function endingSoon({ credentials, checkedAt }: VerifyReport, days: number) {
  const until = Date.parse(checkedAt) + days * 86_400_000;
  return credentials.filter(({ expiresAt }) => expiresAt !== undefined && Date.parse(expiresAt) <= until);
}
