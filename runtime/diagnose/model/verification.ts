/**
 * What asking the registries comes to: a verdict for each credential at each place, for each credential, and for each image.
 *
 * A pull source without the image is not a fault as long as another one has it: mirrors may be incomplete. A credential
 * that a registry refuses is one even when the pull works by another: it is still sent, and counts against rate limits.
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

/** The worst first. */
export type PullVerdict = (typeof VERDICTS)[number];

/** What a registry said, or what stood in the way. */
export interface RegistryAnswer {
  readonly verdict: string;
  /** Never a value of a credential. */
  readonly message: string;
}

/** An image in use, with all that is tried for it. */
export interface ImageInUse {
  readonly image: string;
  /** `Deployment/web/shop`; one of several is enough. */
  readonly usedBy: string;
  readonly attempts: readonly PullAttempt[];
  /** What `explain` finds, whatever the registries answer. */
  readonly findings: readonly Finding[];
}

/** An attempt with its answer. */
export interface VerifiedAttempt extends Pick<PullAttempt, 'reference' | 'kind'> {
  /** Where it stands: `Secret/web/pull`, or the file of the node; the Secret of an entry that was merged. */
  readonly credential?: Pick<EntryPlace, 'source' | 'key'>;
  readonly verdict: PullVerdict;
  readonly message: string;
}

export type VerifyReport = ReturnType<typeof verifyReport>;
export type VerifiedImage = VerifyReport['images'][number];
export type VerifiedCredential = VerifyReport['credentials'][number];

/** Rates all answers at the time `now`. Total. */
export function verifyReport(
  users: readonly ImageInUse[],
  answers: ReadonlyMap<PullAttempt, RegistryAnswer>,
  now: Date,
) {
  const attempts = users.flatMap((user) => user.attempts);
  const verified = new Map(attempts.map((one) => [one, verifiedAttempt(one, answers.get(one), now)]));
  const byCredential = Map.groupBy(verified, ([, { credential }]) => credential && key(credential));
  return {
    /** RFC 3339, whole seconds. */
    checkedAt: `${now.toISOString().slice(0, 19)}Z`,
    images: users.map((user) => verifiedImage(user, verified)),
    /** The worst first. */
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
  if (answer === undefined) return { ...one, verdict: 'NotAsked', message: notAsked ?? 'was not tried' };
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
    message: 'no place gives this image',
    advice: `Run ${whyCommand(user)} with the same --from or --context`,
  };
  return {
    ...user,
    attempts,
    /** Whether some place gives it. `unknown` when no answer says so either way. */
    pullable,
    /** Those of `explain`, and where nothing else says why it cannot be pulled, that no place gives it. */
    findings: pullable === 'no' && !isBroken ? [...user.findings, none] : user.findings,
  };
}

function pullableBy(attempts: readonly VerifiedAttempt[]): 'yes' | 'no' | 'unknown' {
  if (attempts.some(({ verdict }) => verdict === 'Valid')) return 'yes';
  return attempts.some(({ verdict }) => verdict === 'NotAsked' || verdict === 'RateLimited')
    ? 'unknown'
    : 'no';
}

/** A credential with its worst answer, the first of these, not counting a missing image. */
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

/** That an image is absent says that the credential was taken: `Valid` says more, all else is worse. */
function rank(verdict: PullVerdict): number {
  return verdict === 'NotFound' ? VERDICTS.length : VERDICTS.indexOf(verdict);
}

function key({ source, key: written }: Pick<EntryPlace, 'source' | 'key'>): string {
  return `${source}\n${written}`;
}

/** The command that says why the image is not pulled: of the workload that uses it, else of the ServiceAccount. */
export function whyCommand({ image, usedBy }: Pick<ImageInUse, 'image' | 'usedBy'>): string {
  const [kind = '', namespace = '', name = ''] = usedBy.split('/').map(shellWord);
  return kind === 'ServiceAccount'
    ? `pullwright explain ${shellWord(image)} -n ${namespace} --service-account ${name}`
    : `pullwright doctor ${kind.toLowerCase()}/${name} -n ${namespace}`;
}

/** What is wrong with credentials: refused, expired, or about to expire within so many days. */
export function judgeCredentials(report: VerifyReport, warnDays: number): readonly Finding[] {
  const refused = report.credentials.filter(isRefused).map(({ key, source, message }) => ({
    subject: source,
    message: `"${key}" ${message}`,
    advice: renewing(source),
  }));
  const ending = endingSoon(report, warnDays).map((one) =>
    endingTold(one, Date.parse(one.expiresAt ?? '') <= Date.parse(report.checkedAt) ? 'expired' : 'expiring'),
  );
  return judge([{ id: 'credential', run: () => [...refused, ...ending] }], report, { subject: '' });
}

/** Whether a registry does not take it. */
export function isRefused({ verdict }: { readonly verdict: PullVerdict }): boolean {
  return ['Expired', 'Invalid', 'Forbidden'].includes(verdict);
}

/** Whether a person should act: a credential is refused, or an image cannot be pulled. */
export function wantsAttention({ images, credentials }: VerifyReport): boolean {
  return images.some((image) => image.pullable === 'no') || credentials.some(isRefused);
}

/** Credentials that expire within `days` of the report, or have expired. */
export function endingSoon(
  { credentials, checkedAt }: VerifyReport,
  days: number,
): readonly VerifiedCredential[] {
  const until = Date.parse(checkedAt) + days * 86_400_000;
  return credentials.filter(({ expiresAt }) => expiresAt !== undefined && Date.parse(expiresAt) <= until);
}
