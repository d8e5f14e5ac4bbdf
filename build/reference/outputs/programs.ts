/** What `reconcile --output json` prints, offline and with `--dry-run`. */
import { z } from 'zod';
import type { SynthOutput } from '../../../charts/synth.ts';
import type { RunReport } from '../../../runtime/commands/reconcile/report.ts';
import type { UninstallOutput, UninstallPlanOutput } from '../../../runtime/commands/uninstall/command.ts';
import { STAGES } from '../../../runtime/commands/uninstall/plan.ts';
import type { InstallerReport } from '../../../runtime/credential-provider/installer/report.ts';
import type { CheckReport, DryRunReport } from '../../../runtime/credential-provider/plugin/check.ts';
import type { PreviewFacts } from '../../../runtime/global-pull-secret/agent/agent.ts';
import { countField, flagField, form, type OutputForm, optionalText, textField, textsField } from './form.ts';

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
  retryPolicy: z
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

// What `agent --once --output json` prints.

export const AGENT_FORMS: readonly OutputForm[] = [
  form<PreviewFacts>('with --once')(
    z.strictObject({
      would: optionalText('With --dry-run: what would be done next'),
      restart: flagField(
        'Of a change that is under way: whether the kubelet is restarted for it',
      ).exactOptional(),
      source: optionalText('Where the pull secret was read'),
      entries: countField('Entries of the pull secret').exactOptional(),
      foreign: countField('Those of them that belong to others').exactOptional(),
      ready: flagField('Whether the file is as it should be'),
      reason: textField('Why, or why not: stable, for programs'),
      message: textField('The same for people'),
    }),
  ),
];

// What `install-provider --output json` prints.

export const INSTALL_PROVIDER_FORMS: readonly OutputForm[] = [
  form<InstallerReport>('with --once or --dry-run')(
    z.strictObject({
      node: textField('Name of the node'),
      ready: flagField('Whether the node is as it should be'),
      reason: textField('Why, or why not: stable, for programs'),
      message: textField('The same for people'),
      would: z
        .array(
          z.strictObject({
            action: z.enum(['create', 'replace', 'remove', 'reload', 'restart']).describe('What is done'),
            what: textField('A path of the host, or a unit'),
            details: textsField('What differs, by meaning'),
          }),
        )
        .describe('With --dry-run: what would happen, in order')
        .exactOptional(),
      resumes: optionalText('With --dry-run: what is to be done first, when a run was interrupted'),
      entries: z
        .array(
          z.strictObject({
            pattern: textField('Of matchImages'),
            verdict: textField('Rendered, or why it is left out: stable, for programs'),
            message: textField('The same for people'),
          }),
        )
        .describe('Patterns of the configuration')
        .exactOptional(),
    }),
  ),
];

// What `provider --output json` prints.

export const PROVIDER_FORMS: readonly OutputForm[] = [
  form<DryRunReport>('with --dry-run')(
    z.strictObject({
      image: textField('The image of the request'),
      namespace: optionalText('Namespace of the pod'),
      sources: z
        .array(
          z.strictObject({
            repository: textField('Where the image is asked for'),
            kind: textField('mirror or source'),
            key: optionalText('The key of the entry that is taken for it'),
            secret: optionalText('The Secret that has that entry'),
          }),
        )
        .describe('Places that the image is pulled from'),
      file: optionalText('The auth file that would be written'),
      content: z.unknown().describe('That file, with every credential as [redacted]').optional(),
    }),
  ),
  form<CheckReport>('with --check, on one line')(
    z.strictObject({
      ok: flagField('Whether a run for the kubelet would get as far as the Secrets'),
      message: textField('What was found, or what is wrong and what to do'),
    }),
  ),
];

// What `synth --output json` prints.

export const SYNTH_FORMS: readonly OutputForm[] = [
  form<SynthOutput>('after writing, and with --check')(
    z.strictObject({
      fleet: textField('The fleet, as it was named'),
      to: textField('The folder, as it was named'),
      difference: z
        .strictObject({
          added: textsField('Files that were not there'),
          changed: textsField('Files that had other content'),
          stale: textsField('Files of ours that the fleet does not render any more'),
          inTheWay: textsField('Files of others where a rendered one belongs'),
          unchanged: countField('How many files are as they should be'),
        })
        .describe('What the fleet renders, against what the folder had'),
      missing: textsField('Files that a person has to provide and that are not there'),
      clusters: z
        .array(
          z.strictObject({
            name: textField('Its name'),
            path: textField('Its folder'),
            kept: textsField('Files that people keep, relative to the folder'),
            objects: countField('How many objects are rendered for it'),
          }),
        )
        .describe('Clusters of the fleet'),
    }),
  ),
];

// What `uninstall --output json` prints.

const KEPT = z
  .array(z.strictObject({ object: textField('The object'), reason: textField('Why it stays') }))
  .describe('Objects that stay');

export const UNINSTALL_FORMS: readonly OutputForm[] = [
  form<UninstallPlanOutput>('with --dry-run')(
    z.strictObject({
      stages: z
        .array(
          z.strictObject({
            name: z.enum(STAGES).describe('Its name'),
            removals: z
              .array(
                z.strictObject({
                  object: textField('The object'),
                  do: z
                    .enum(['delete', 'leave-nodes', 'release'])
                    .describe(
                      'leave-nodes: removed after its nodes have been left; release: only our fields are given up',
                    ),
                }),
              )
              .describe('What happens to which objects'),
          }),
        )
        .describe('In order; stages without an object are left out'),
      kept: KEPT,
    }),
  ),
  form<UninstallOutput>('when it is done')(
    z.strictObject({ removed: countField('How many objects were removed'), kept: KEPT }),
  ),
];
