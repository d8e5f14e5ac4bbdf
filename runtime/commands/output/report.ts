/** What `report --output json` prints. */
import { z } from 'zod';
import { REPORT_SYSTEMS, type Report } from '../../rules/report/types.ts';
import { optionalText, textField, textsField } from './fields.ts';
import { form, type OutputForm } from './form.ts';
import { REPORT_CLUSTER } from './report-cluster.ts';
import { REPORT_VERDICT } from './report-verdict.ts';

const CAUSE = z.strictObject({
  cause: textField('What is wrong: stable, for programs'),
  system: z.enum(REPORT_SYSTEMS).describe('The system that it belongs to'),
  verdict: REPORT_VERDICT,
  title: textField('The same for people'),
  clusters: textsField('Clusters that have it'),
  cases: z
    .array(
      z.strictObject({
        cluster: textField('The cluster'),
        object: textField('The object'),
        message: textField('What is wrong with it'),
        advice: optionalText('What to do, in one sentence'),
        fix: optionalText('YAML to apply with kubectl apply --server-side'),
        pull: optionalText('The id of the pull that shows it'),
      }),
    )
    .describe('Where it is'),
});

const CHANGES = z.strictObject({
  since: textField('When the earlier report was made, RFC 3339'),
  list: z
    .array(
      z.strictObject({
        what: z
          .enum(['problem', 'cluster', 'verdict', 'key', 'nodes', 'mirrors'])
          .describe('What is different'),
        change: z.enum(['new', 'gone', 'changed']).describe('How'),
        cluster: textField('The cluster'),
        subject: textField('What it is about'),
        before: optionalText('As it was'),
        after: optionalText('As it is'),
      }),
    )
    .describe('Each difference'),
});

export const REPORT_FORMS: readonly OutputForm[] = [
  form<Report>('always; --diff reads it again')(
    z.strictObject({
      version: z.literal(1).describe('Of this shape; another number is another shape'),
      madeAt: textField('When it was made, RFC 3339'),
      source: textField('The folder or context that was looked at'),
      clusters: z.array(REPORT_CLUSTER).describe('The worst first'),
      problems: z.array(CAUSE).describe('Problems by their cause, the worst first'),
      unread: textsField('What could not be read'),
      changes: CHANGES.describe(
        'Differences to an earlier report; absent when none was given',
      ).exactOptional(),
    }),
  ),
];
