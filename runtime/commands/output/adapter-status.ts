/** What `adapter status --output json` prints. */
import { z } from 'zod';
import type { ClusterView } from '../../pull-secret-adapter/adapter/cluster-view.ts';
import { anything, flagField, optionalText, textField, textsField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

const REPORT = z.strictObject({
  generation: z.number().describe('Generation of the cluster that it is about'),
  time: optionalText('When it was made, RFC 3339'),
  conditions: z
    .array(
      z.strictObject({
        type: textField('Its type'),
        status: textField('True, False or Unknown'),
        reason: textField('Why: stable, for programs'),
        message: textField('The same for people'),
      }),
    )
    .describe('Its conditions'),
});

const JOB = z.strictObject({
  name: textField('Its name'),
  purpose: textField('store or delete'),
  attempt: z.number().describe('Which attempt it is'),
  phase: textField('How far it is'),
  started: optionalText('When it started, RFC 3339'),
  finished: optionalText('When it ended, RFC 3339'),
  reason: optionalText('Its outcome: see exit-codes.md'),
  message: optionalText('The same for people'),
});

export const ADAPTER_STATUS_FORMS: readonly OutputForm[] = [
  form<ClusterView>('always; with --watch, one document after the other')(
    z.strictObject({
      cluster: textField('Identifier of the cluster'),
      report: REPORT.describe(
        "The adapter's report; absent where the API knows none, or was not asked",
      ).exactOptional(),
      jobs: z.array(JOB).describe('Jobs that store or delete its pull secret'),
      versions: z
        .strictObject({
          secret: optionalText('The secret in Google Secret Manager'),
          current: optionalText('Its current version'),
          created: optionalText('When that was made, RFC 3339'),
          enabled: z.number().describe('How many versions are enabled').exactOptional(),
          proved: optionalText('When it was last proved to be stored, RFC 3339'),
        })
        .describe('What is known of Google Secret Manager'),
      management: z
        .array(
          z.strictObject({
            place: textField('Namespace and name'),
            state: z
              .enum(['written', 'not there', 'not ours', 'namespace gone', 'namespace terminating'])
              .describe('What is there now'),
          }),
        )
        .describe("HyperShift's Secrets"),
      places: textsField('Places that were ever written to'),
      receipt: anything('What became of each place').exactOptional(),
      events: z
        .array(
          z.strictObject({
            time: textField('When, RFC 3339'),
            type: textField('Normal or Warning'),
            object: textField('What it is about'),
            reason: textField('Why: stable, for programs'),
            message: textField('The same for people'),
          }),
        )
        .describe('What the API server noted, the newest first'),
      inOrder: flagField('Whether nothing is wrong with it; the exit code says the same'),
    }),
  ),
];
