/** A verification as a PullStatus about the CronJob that made it, with events for those who own the credentials. */
import {
  type ConditionInput,
  type ConditionText,
  type SummaryRow,
  summarize,
} from '../kubernetes/conditions.ts';
import type { KubeObject } from '../kubernetes/object.ts';
import { pullStatus, type Verdict } from '../kubernetes/pull-status.ts';
import { counted } from '../text/counted.ts';
import {
  endingSoon,
  type PullVerdict,
  type VerifiedCredential,
  type VerifyReport,
  wantsAttention,
} from './verify-report.ts';

/** Name of the CronJob, and of what belongs to it. */
export const VERIFY = 'pullwright-verify';

export interface VerifyStatusInput {
  readonly report: VerifyReport;
  /** What could not be read. */
  readonly problems: readonly string[];
  readonly warnDays: number;
  /** The CronJob. */
  readonly about: { readonly namespace: string; readonly name: string };
  /** The PullStatus as it is, so that what was once taken stays known. */
  readonly present: KubeObject | undefined;
}

/** Something to tell the owner of a Secret. */
export interface VerifyEvent {
  readonly secret: { readonly namespace: string; readonly name: string };
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly note: string;
}

/** What to write: never a value, and never which of several passwords it was. */
export interface VerifyStatus {
  readonly object: KubeObject;
  readonly status: Readonly<Record<string, unknown>>;
  /** For credentials whose verdict is another than before. */
  readonly events: readonly VerifyEvent[];
}

const REFUSED: readonly PullVerdict[] = ['Expired', 'Invalid', 'Forbidden'];

/** Makes the status. */
export function verifyStatus(input: VerifyStatusInput): VerifyStatus {
  const { report, about, present, warnDays } = input;
  const before = new Map(verdictsOf(present).map((verdict) => [verdict.subject, verdict]));
  const soon = new Set(endingSoon(report, warnDays));
  const credentials = report.credentials.map((one) => ({
    one,
    verdict: credentialVerdict(one, {
      soon: soon.has(one),
      lastOk: before.get(subjectOf(one))?.lastOk,
      now: report.checkedAt,
    }),
  }));
  const broken = report.images
    .filter(({ pullable }) => pullable === 'no')
    .map(
      ({ image, usedBy }): Verdict => ({
        subject: image,
        verdict: 'Rejected',
        reason: 'NotPullable',
        message: `used by ${usedBy}: no place gives this image; see pullwright doctor`,
      }),
    );
  const { object, status } = pullStatus({
    reporter: 'verify',
    about: { apiVersion: 'batch/v1', kind: 'CronJob', ...about },
    conditions: conditionsOf(input, soon),
    verdicts: [...broken, ...credentials.map(({ verdict }) => verdict)],
    summary: {
      checkedAt: report.checkedAt,
      images: report.images.length,
      notPullable: broken.length,
      credentials: report.credentials.length,
    },
    present,
    now: new Date(report.checkedAt),
  });
  const events = credentials.flatMap(({ one, verdict }) =>
    eventOf(one, verdict, before.get(verdict.subject)),
  );
  return { object, status, events };
}

/** The verdicts that a PullStatus holds. */
export function verdictsOf(object: KubeObject | undefined): readonly Verdict[] {
  return (object?.status as { readonly verdicts?: readonly Verdict[] } | undefined)?.verdicts ?? [];
}

function subjectOf({ source, key }: VerifiedCredential): string {
  return `${key} in ${source}`.slice(0, 1024);
}

function credentialVerdict(
  one: VerifiedCredential,
  {
    soon,
    lastOk,
    now,
  }: { readonly soon: boolean; readonly lastOk: string | undefined; readonly now: string },
): Verdict {
  // That an image is not there says that the credential was taken.
  const taken = one.verdict === 'Valid' || one.verdict === 'NotFound';
  const ok = taken ? now : lastOk;
  const good = taken && !soon;
  return {
    subject: subjectOf(one),
    verdict: REFUSED.includes(one.verdict) ? 'Rejected' : good ? 'Accepted' : 'Warning',
    reason: taken && soon ? 'EndsSoon' : one.verdict,
    message: (taken && soon ? `ends at ${one.expiresAt}: renew it` : one.message).slice(0, 4096),
    ...(one.expiresAt === undefined ? {} : { expiresAt: one.expiresAt }),
    ...(ok === undefined ? {} : { lastOk: ok }),
  };
}

const SUMMARY: readonly SummaryRow<VerifyStatusInput>[] = [
  ['stalled', incomplete],
  ['stalled', attention],
  ['ready', verified],
];

function incomplete({ problems }: VerifyStatusInput): ConditionText | undefined {
  return problems.length === 0
    ? undefined
    : { reason: 'Incomplete', message: problems.slice(0, 5).join('; ') };
}

function attention({ report }: VerifyStatusInput): ConditionText | undefined {
  if (!wantsAttention(report)) return undefined;
  const refused = report.credentials.filter(({ verdict }) => REFUSED.includes(verdict)).length;
  const broken = report.images.filter(({ pullable }) => pullable === 'no').length;
  return {
    reason: broken > 0 ? 'ImagesNotPullable' : 'CredentialsRefused',
    message: `${counted(broken, 'image')} cannot be pulled, ${counted(refused, 'credential is', 'credentials are')} refused: the verdicts say which`,
  };
}

function verified({ report }: VerifyStatusInput): ConditionText {
  return {
    reason: 'Verified',
    message: `${counted(report.images.length, 'image')} and ${counted(report.credentials.length, 'credential')} are in order`,
  };
}

function conditionsOf(
  input: VerifyStatusInput,
  soon: ReadonlySet<VerifiedCredential>,
): readonly ConditionInput[] {
  return [
    ...summarize(SUMMARY, input),
    {
      type: 'EndingSoon',
      status: soon.size > 0 ? 'True' : 'False',
      reason: soon.size > 0 ? 'RenewCredentials' : 'NothingEnds',
      message:
        soon.size > 0
          ? `${counted(soon.size, 'credential ends soon or has', 'credentials end soon or have')} ended`
          : 'no credential ends soon',
    },
  ];
}

/** Only for a change: what is wrong for weeks is in the status. */
function eventOf(
  { source, key, verdict }: VerifiedCredential,
  now: Verdict,
  before: Verdict | undefined,
): readonly VerifyEvent[] {
  const [kind, namespace = '', name = ''] = source.split('/');
  if (kind !== 'Secret' || name === '' || !isNews(verdict, now, before)) return [];
  const good = now.verdict === 'Accepted';
  return [
    {
      secret: { namespace, name },
      type: good ? 'Normal' : 'Warning',
      reason: good ? 'CredentialValid' : `Credential${now.reason}`,
      note: `Entry "${key}": ${good ? 'is taken again' : now.message}`,
    },
  ];
}

function isNews(verdict: PullVerdict, now: Verdict, before: Verdict | undefined): boolean {
  if (now.reason === before?.reason) return false;
  if (now.verdict === 'Accepted') return before !== undefined;
  // A registry that is away says nothing about the Secret.
  return REFUSED.includes(verdict) || now.reason === 'EndsSoon';
}
