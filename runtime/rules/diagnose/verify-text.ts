/** A verification for people: what wants attention first, then every credential, then the sums. */

import { counted } from '../text/counted.ts';
import { textRecords } from '../text/records.ts';
import type { Paint } from './explain-text.ts';
import {
  endingSoon,
  type PullVerdict,
  type VerifiedAttempt,
  type VerifiedCredential,
  type VerifiedImage,
  type VerifyReport,
} from './verify-report.ts';

export interface VerifyLook {
  readonly paint: Paint;
  /** Width of the terminal; undefined: nothing is cut. */
  readonly columns?: number;
  /** Credentials that end within so many days are pointed out. */
  readonly warnDays: number;
}

/** The text. Ends with a newline. */
export function verifyText(report: VerifyReport, { paint, columns, warnDays }: VerifyLook): string {
  const soon = new Set(endingSoon(report, warnDays));
  const attempts = report.images.flatMap((image) => rowsOf(image));
  const credentials = report.credentials.map((one) => [
    one.verdict,
    `"${one.key}" in ${one.source}`,
    `${one.expiresAt ?? '-'}${soon.has(one) ? noteOf(one, report) : ''}`,
    String(one.images),
    one.verdict === 'Valid' ? '' : one.message,
  ]);
  const tables = [
    textRecords([['VERDICT', 'PLACE', 'CREDENTIAL', 'MESSAGE'], ...attempts], columns),
    ...(credentials.length === 0
      ? []
      : [textRecords([['VERDICT', 'CREDENTIAL', 'ENDS', 'TRIED', 'MESSAGE'], ...credentials], columns)]),
  ];
  return `${tables.map((table) => painted(table, paint)).join('\n')}\n${sums(report)}\n`;
}

/** Beside a time that has come, or comes soon; the verdict says it already where the registry refused for it. */
function noteOf({ verdict, expiresAt = '' }: VerifiedCredential, { checkedAt }: VerifyReport): string {
  if (verdict === 'Expired') return '';
  return Date.parse(expiresAt) <= Date.parse(checkedAt) ? ' (ended)' : ' (soon)';
}

/** What cannot be pulled first, with who uses it. */
function rowsOf(image: VerifiedImage): readonly (readonly string[])[] {
  const rows = image.attempts.map((attempt) => rowOf(attempt));
  if (image.pullable !== 'no') return rows;
  return [...rows, ['Broken', image.image, `used by ${image.usedBy}`, 'no place gives this image']];
}

function rowOf({ verdict, reference, credential, message }: VerifiedAttempt): readonly string[] {
  const by = credential === undefined ? 'none' : `"${credential.key}" in ${credential.source}`;
  return [verdict, reference, by, verdict === 'Valid' ? '' : message];
}

const COLOURS: Readonly<Record<PullVerdict | 'Broken', 'green' | 'yellow' | 'red'>> = {
  Valid: 'green',
  NotFound: 'yellow',
  NotAsked: 'yellow',
  Unreachable: 'yellow',
  RateLimited: 'yellow',
  Forbidden: 'red',
  Invalid: 'red',
  Expired: 'red',
  Broken: 'red',
};

function painted(table: string, paint: Paint): string {
  return table.replace(/^\w+/gm, (word) =>
    Object.hasOwn(COLOURS, word) ? paint(COLOURS[word as PullVerdict], word) : paint('bold', word),
  );
}

function sums({ images, credentials }: VerifyReport): string {
  const count = (pullable: VerifiedImage['pullable']): number =>
    images.filter((image) => image.pullable === pullable).length;
  const verdicts = new Map<string, number>();
  for (const { verdict } of credentials) verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
  const unknown = count('unknown') === 0 ? '' : `, ${count('unknown')} unknown`;
  const judged = [...verdicts].map(([verdict, number]) => `${number} ${verdict}`).join(', ') || 'none';
  return `${counted(images.length, 'image')}: ${count('yes')} can be pulled, ${count('no')} cannot${unknown}; credentials: ${judged}`;
}
