/** What `adapter --event --dry-run --output json` prints. */
import { z } from 'zod';
import type { OfflineEventResult } from '../../pull-secret-adapter/adapter/offline.ts';
import {
  anything,
  flagField,
  KUBERNETES_OBJECT,
  optionalText,
  textField,
  textsByName,
  textsField,
} from './fields.ts';
import { form, type OutputForm } from './form.ts';

const PRECONDITIONS = z
  .array(
    z.strictObject({
      name: textField('Its name'),
      met: flagField('Whether it holds'),
      reason: optionalText('What is the case, when it does not'),
    }),
  )
  .describe('What has to hold before anything starts');
const VERDICT =
  'waiting: comes true without a change of the cluster; invalid: stays so until somebody changes it';

const NO_START = {
  reason: z
    .enum([
      'PreconditionNotMet',
      'InvalidPullSecret',
      'InvalidConfiguration',
      'TenancyUnproven',
      'ManagementNamespaceTerminating',
    ])
    .describe('Why nothing may start'),
  message: textField('The same for people'),
  preconditions: PRECONDITIONS,
  retryAfterMs: z.number().describe('When it is worth looking again, in milliseconds').exactOptional(),
};

const PLAN = z.discriminatedUnion('verdict', [
  z.strictObject({ verdict: z.literal('ready').describe(VERDICT), preconditions: PRECONDITIONS }),
  z.strictObject({ verdict: z.literal('waiting').describe(VERDICT), ...NO_START }),
  z.strictObject({ verdict: z.literal('invalid').describe(VERDICT), ...NO_START }),
  z.strictObject({ verdict: z.literal('deleting').describe(VERDICT), preconditions: PRECONDITIONS }),
]);

const DO = 'What is done';
const JOB = textField('Name of the Job');
const JOB_UID = textField('UID of the Job');
const UID = textField('UID of the object');

const EFFECT = z.discriminatedUnion('do', [
  z.strictObject({ do: z.literal('record').describe(DO), places: textsField('Places that are written to') }),
  z.strictObject({
    do: z.literal('start').describe(DO),
    purpose: z.enum(['store', 'delete']).describe('What the Job is for'),
    job: JOB,
    attempt: z.int().describe('Which attempt it is, from 1'),
    places: textsField('Places that are written to'),
  }),
  z.strictObject({ do: z.literal('repair-secret').describe(DO), jobUid: JOB_UID, job: JOB }),
  z.strictObject({
    do: z.literal('repair-labels').describe(DO),
    job: JOB,
    jobUid: JOB_UID,
    labels: textsByName('Labels that are put back'),
  }),
  z.strictObject({ do: z.literal('remove-secret').describe(DO), uid: UID }),
  z.strictObject({
    do: z.literal('remove-job').describe(DO),
    job: JOB,
    uid: UID,
    waitForPods: flagField('Whether its pods have to end first'),
  }),
  z.strictObject({ do: z.literal('remove-binding').describe(DO), namespace: textField('Its namespace') }),
  z.strictObject({ do: z.literal('remove-record').describe(DO), uid: UID }),
]);

const STATUS = z.strictObject({
  adapter: textField('Name of the adapter'),
  observed_generation: z.number().describe('Generation of the cluster that was looked at'),
  conditions: z
    .array(
      z.strictObject({
        type: z.enum(['Available', 'Applied', 'Health', 'Finalized']).describe('Its type'),
        status: z.enum(['True', 'False']).describe('Whether it holds'),
        reason: textField('Why: stable, for programs'),
        message: textField('The same for people'),
      }),
    )
    .describe('The conditions of the cluster'),
  data: anything('What the adapter remembers: version of the secret, places, receipt'),
  metadata: z
    .record(z.string(), z.union([z.string(), z.number()]))
    .describe('Names of what was made')
    .exactOptional(),
  observed_time: textField('When it was looked at, RFC 3339'),
});

export const ADAPTER_FORMS: readonly OutputForm[] = [
  form<OfflineEventResult>('with --event and --dry-run')(
    z.strictObject({
      cluster: textField('Identifier of the cluster'),
      plan: PLAN.describe('Whether anything may start, and if not, why'),
      phase: z
        .enum(['waiting', 'invalid', 'started', 'running', 'stored', 'failed', 'deleting', 'deleted'])
        .describe('How far the pull secret is'),
      effects: z.array(EFFECT).describe('What would be done, in order'),
      resources: z.array(KUBERNETES_OBJECT).describe('Objects that would be made; values are redacted'),
      status: STATUS.describe('What would be reported to the API'),
      answer: z
        .strictObject({
          status: z
            .union([z.literal(201), z.literal(204), z.literal(400), z.literal(404)])
            .describe('HTTP status'),
          detail: optionalText('What is wrong with the report'),
          aggregate: flagField('Whether the report counts for the conditions of the cluster').exactOptional(),
        })
        .describe('What the API would answer to that report'),
    }),
  ),
];
