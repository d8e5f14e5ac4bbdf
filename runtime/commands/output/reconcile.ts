/** What `reconcile --output json` prints, offline and with `--dry-run`. */
import { z } from 'zod';
import type { RunReport } from '../reconcile/report.ts';
import { countField, flagField, optionalText, textField, textsField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

const RECONCILER = textField('Name of the reconciler');
const REASON = textField('Why: stable, for programs');
const MESSAGE = textField('The same for people');
const OBJECT = textField('The object, such as Secret/kube-system/global-pull-secret');
const ROLE = z
  .enum(['hosted', 'management'])
  .describe(
    'management: in the cluster that runs the control plane; of a stand-alone cluster it is the same',
  );

const EVENT = z.strictObject({
  regarding: z
    .strictObject({
      role: ROLE,
      apiVersion: textField('Group and version of its kind'),
      kind: textField('Its kind'),
      namespace: optionalText('Its namespace'),
      name: textField('Its name'),
      uid: optionalText('Its UID'),
    })
    .describe('What it is about'),
  type: z.enum(['Normal', 'Warning']).describe('Its type'),
  reason: REASON,
  action: textField('What was being done'),
  note: MESSAGE,
  reconciler: RECONCILER,
});

const TEMPLATE = z.strictObject({
  template: textField('The template, such as Deployment/shop/web'),
  secrets: z
    .array(
      z.strictObject({
        name: textField('Its name'),
        by: textField('Who lists it, such as PullSecretProfile/team'),
        present: flagField('Whether it is in the namespace, or will be brought there'),
      }),
    )
    .describe('In the order in which a kubelet tries them'),
  notInjected: textsField('Names that would be added and are not, because nothing injects into such pods'),
});

const PROBLEM = z.strictObject({
  disposition: z
    .enum(['terminal', 'waiting', 'retry'])
    .describe(
      'terminal: a person has to act; waiting: it is looked at again later; retry: it is tried again',
    ),
  code: textField('What is wrong: see errors.md'),
  message: MESSAGE,
  hint: optionalText('What to do'),
  afterMs: z.number().describe('When it is looked at again, in milliseconds').exactOptional(),
  reconciler: RECONCILER,
  key: z
    .strictObject({
      scope: textField('The cluster'),
      namespace: optionalText('Its namespace'),
      name: textField('Its name'),
    })
    .describe('What was reconciled'),
});

const ONE = z.strictObject({
  scope: textField('The cluster: namespace and name of the HostedCluster, or local'),
  objects: z
    .array(
      z.strictObject({
        verb: z.enum(['created', 'configured', 'unchanged', 'removed']).describe('What would happen to it'),
        role: textField('hosted or management: the cluster that it is in'),
        object: OBJECT,
        reconciler: RECONCILER,
        diff: z
          .array(
            z.strictObject({
              sign: z.enum(['+', '-', '~']).describe('Added, taken away, changed'),
              text: textField('Field and value; values of Secrets in words'),
            }),
          )
          .describe('What would change of it'),
      }),
    )
    .describe('Objects that are managed'),
  events: z.array(EVENT).describe('Events that would be sent'),
  conditions: z
    .array(
      z.strictObject({
        type: textField('Its type: see conditions.md'),
        status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds'),
        reason: REASON,
        message: MESSAGE,
        object: OBJECT,
      }),
    )
    .describe('Conditions that would be reported'),
  verdicts: z
    .array(
      z.strictObject({
        object: OBJECT,
        subject: textField('The entry that it is about'),
        verdict: textField('Accepted, Shadowed, Rejected, Warning or Pending'),
        reason: REASON,
        message: MESSAGE,
      }),
    )
    .describe('What is said of each entry'),
  actions: textsField('Lists that would be patched'),
  templates: z
    .array(TEMPLATE)
    .describe('What the pods of templates will pull with, where profiles or SidecarSets have a part in it'),
  problems: z.array(PROBLEM).describe('What is not as it should be'),
  counts: z
    .strictObject({
      created: countField('How many are created'),
      configured: countField('How many are changed'),
      unchanged: countField('How many stay'),
      removed: countField('How many are removed'),
    })
    .describe('Objects by what would happen to them'),
});

export const RECONCILE_FORMS: readonly OutputForm[] = [
  form<RunReport>('of one cluster')(ONE),
  form<readonly RunReport[]>('of several clusters, or none')(z.array(ONE)),
];
