/**
 * What asking the registries comes to: a verdict for each credential at each place, for each credential, and for each image.
 *
 * A pull source without the image is not a fault as long as another one has it: mirrors may be incomplete. A credential
 * that a registry refuses is one even when the pull works by another: it is still sent, and counts against rate limits.
 */

import { credentialExpiry } from '../../core/docker-config/expiry.ts';
import { shellWord } from '../../core/text.ts';
import { type Check, error, firstBroken, judge } from '../checks/findings.ts';
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

/** Where a credential stands: `Secret/web/pull`, or the file of the node; the Secret of an entry that was merged. */
export type CredentialPlace = Pick<EntryPlace, 'source' | 'key'>;

export interface VerifiedAttempt extends Pick<PullAttempt, 'reference' | 'kind'> {
  readonly credential?: CredentialPlace;
  readonly verdict: PullVerdict;
  readonly message: string;
}

export interface VerifiedImage extends Pick<ImageInUse, 'image' | 'usedBy'> {
  /** Whether some place gives it. `unknown` when no answer says so either way. */
  readonly pullable: 'yes' | 'no' | 'unknown';
  readonly attempts: readonly VerifiedAttempt[];
  /** Those of `explain`, and where nothing else says why it cannot be pulled, that no place gives it. */
  readonly findings: readonly Finding[];
}

export interface VerifiedCredential extends CredentialPlace {
  /** Its worst answer, not counting a missing image. */
  readonly verdict: PullVerdict;
  readonly message: string;
  readonly expiresAt?: string;
  readonly kindOfCredential: string;
  readonly images: number;
}

export interface VerifyReport {
  /** RFC 3339, whole seconds. */
  readonly checkedAt: string;
  readonly images: readonly VerifiedImage[];
  /** The worst first. */
  readonly credentials: readonly VerifiedCredential[];
}

/** Rates all answers at the time `now`. Total. */
export function verifyReport(
  users: readonly ImageInUse[],
  answers: ReadonlyMap<PullAttempt, RegistryAnswer>,
  now: Date,
): VerifyReport {
  const credentials = new Map<string, VerifiedCredential>();
  const verified = (attempt: PullAttempt): VerifiedAttempt => {
    const { reference, kind } = attempt;
    const credential = placeOf(attempt);
    const said = judged(attempt, answers.get(attempt), now);
    if (credential === undefined) return { reference, kind, ...said };
    const one = { reference, kind, credential, ...said };
    credentials.set(key(credential), worse(credentials.get(key(credential)), credential, attempt, one));
    return one;
  };
  const images = users.map(({ attempts: all, ...user }): VerifiedImage => {
    const attempts = all.map(verified);
    const isBroken = firstBroken(user.findings) !== undefined;
    const image = { ...user, attempts, pullable: isBroken ? 'no' : pullable(attempts) } as const;
    const findings = isBroken
      ? user.findings
      : [...user.findings, ...judge(IMAGE_CHECKS, image, { subject: image.image })];
    return { ...image, findings };
  });
  return {
    checkedAt: `${now.toISOString().slice(0, 19)}Z`,
    images,
    credentials: [...credentials.values()].toSorted(
      (a, b) => VERDICTS.indexOf(a.verdict) - VERDICTS.indexOf(b.verdict) || (key(a) < key(b) ? -1 : 1),
    ),
  };
}

const IMAGE_CHECKS: readonly Check<VerifiedImage>[] = [
  {
    id: 'registry',
    run: (image) =>
      image.pullable === 'no'
        ? error('no place gives this image', `Run ${whyCommand(image)} with the same --from or --context`)
        : undefined,
  },
];

/** The command that says why the image is not pulled: of the workload that uses it, else of the ServiceAccount. */
export function whyCommand({ image, usedBy }: Pick<VerifiedImage, 'image' | 'usedBy'>): string {
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
    endingTold(one, Date.parse(one.expiresAt ?? '') <= Date.parse(report.checkedAt) ? 'ended' : 'soon'),
  );
  return judge([{ id: 'credential', run: () => [...refused, ...ending] }], report, { subject: '' });
}

/** Whether a registry does not take it. */
export function isRefused({ verdict }: Pick<VerifiedCredential, 'verdict'>): boolean {
  return ['Expired', 'Invalid', 'Forbidden'].includes(verdict);
}

function pullable(attempts: readonly VerifiedAttempt[]): VerifiedImage['pullable'] {
  if (attempts.some(({ verdict }) => verdict === 'Valid')) return 'yes';
  return attempts.some(({ verdict }) => verdict === 'NotAsked' || verdict === 'RateLimited')
    ? 'unknown'
    : 'no';
}

function placeOf({ entry }: PullAttempt): CredentialPlace | undefined {
  return entry === undefined ? undefined : { source: entry.origin ?? entry.source, key: entry.key };
}

function judged(
  { credential, notAsked }: PullAttempt,
  answer: RegistryAnswer | undefined,
  now: Date,
): { readonly verdict: PullVerdict; readonly message: string } {
  if (answer === undefined) return { verdict: 'NotAsked', message: notAsked ?? 'was not tried' };
  const verdict = VERDICTS.find((known) => known === answer.verdict) ?? 'Unreachable';
  const { expiresAt } = credential === undefined ? {} : credentialExpiry(credential);
  const over = expiresAt !== undefined && Date.parse(expiresAt) <= now.getTime();
  return verdict === 'Invalid' && over
    ? { verdict: 'Expired', message: `expired at ${expiresAt}: ${answer.message}` }
    : { verdict, message: answer.message };
}

function key({ source, key: written }: CredentialPlace): string {
  return `${source}\n${written}`;
}

function worse(
  known: VerifiedCredential | undefined,
  place: CredentialPlace,
  { credential }: PullAttempt,
  { verdict, message }: VerifiedAttempt,
): VerifiedCredential {
  const { kind, expiresAt } =
    credential === undefined ? { kind: 'lasting', expiresAt: undefined } : credentialExpiry(credential);
  const first: VerifiedCredential = {
    ...place,
    verdict,
    message,
    ...(expiresAt === undefined ? {} : { expiresAt }),
    kindOfCredential: kind,
    images: 1,
  };
  if (known === undefined) return first;
  const images = known.images + 1;
  return rank(verdict) < rank(known.verdict) ? { ...first, images } : { ...known, images };
}

/** That an image is absent says that the credential was taken: `Valid` says more, all else is worse. */
function rank(verdict: PullVerdict): number {
  if (verdict === 'NotFound') return VERDICTS.length;
  return VERDICTS.indexOf(verdict);
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
