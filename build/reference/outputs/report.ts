/** What `report --output json` prints. */
import { z } from 'zod';
import type { StatusRow } from '../../../runtime/diagnose/checks/status.ts';
import {
  REPORT_SYSTEMS,
  type Report,
  type ReportCluster,
  type ReportVerdict,
} from '../../../runtime/diagnose/model/types.ts';
import {
  countField,
  flagField,
  form,
  formPart,
  type JsonOf,
  type OutputForm,
  optionalText,
  textField,
  textsField,
} from './form.ts';

// The verdict of a cluster, a system, a pull and a namespace, in what `report --output json` prints.

export const REPORT_VERDICT: z.ZodType<ReportVerdict> = formPart<ReportVerdict>()(
  z
    .enum(['broken', 'attention', 'unknown', 'ok'])
    .describe('broken: pods or nodes go without; unknown: nothing has shown that it is in order'),
);

// One cluster in what `report --output json` prints.

const ENTRY = {
  key: textField('Its key, as it is written there'),
  source: textField('The Secret or file that has it'),
};

const NODES = z.strictObject({
  total: countField('How many there are'),
  eligible: countField('Nodes that carry the label, whatever they report'),
  inSync: countField('Nodes that have the pull secret that is there'),
  outOfSync: countField('Nodes that have another one'),
  ineligible: countField('Nodes that take no part'),
  unknown: countField('Nodes of which nothing is known'),
  list: z
    .array(
      z.strictObject({
        name: textField('Its name'),
        state: z.enum(['in-sync', 'out-of-sync', 'ineligible', 'unknown']).describe('How it is'),
        why: optionalText('Why it is so'),
      }),
    )
    .describe('Each node'),
});

const KEY = z.strictObject({
  ...ENTRY,
  state: z
    .enum(['used', 'last-good', 'shadowed', 'rejected'])
    .describe('last-good: an earlier value is used; shadowed: another entry is used in its place'),
  winner: z
    .strictObject(ENTRY)
    .describe('Of one that is not used: what is used in its place')
    .exactOptional(),
  why: optionalText('Why it is not used'),
  expiresAt: optionalText('When it ends, RFC 3339'),
  ends: z.enum(['ended', 'soon']).describe('Whether it has ended, or does so soon').exactOptional(),
  onNodes: countField('Nodes that are known to have it'),
});

const KUBELET = z.strictObject({
  blocked: optionalText('Why the kubelet pulls nothing for the pod'),
  tried: z.array(z.strictObject(ENTRY)).describe('Entries, in the order in which they are tried'),
  lost: z
    .array(z.strictObject({ ...ENTRY, why: textField('Why it is not tried') }))
    .describe('Entries for the same registry that are not tried'),
  others: countField('Entries for other registries'),
});

const PLACE = z.strictObject({
  reference: textField('Where the image is asked for'),
  kind: z.enum(['mirror', 'source']).describe('source: the place that the image itself names'),
  from: optionalText('The object and field that names it'),
  sent: z
    .enum(['kubelet', 'entry', 'helper', 'nothing', 'failure'])
    .describe("kubelet: the kubelet's credential; failure: it comes to none of it"),
  entry: z.strictObject(ENTRY).describe('The entry that is sent').exactOptional(),
  why: optionalText('Why that is sent'),
});

const PULL = z.strictObject({
  id: textField('Unique in the report'),
  namespace: textField('Its namespace'),
  object: textField('The workload or pod, such as Deployment/shop/web'),
  pods: countField('How many pods it stands for'),
  image: textField('The image'),
  verdict: REPORT_VERDICT,
  secrets: z
    .array(
      z.strictObject({
        name: textField('Its name'),
        listedBy: textField('Who lists it'),
        state: textField('found, missing, ignored or unknown'),
      }),
    )
    .describe('Secrets that the pod lists, in its order'),
  kubelet: KUBELET.describe('What the kubelet chooses'),
  places: z.array(PLACE).describe('In the order in which CRI-O asks them'),
  containerd: z
    .enum(['kubelet', 'nothing', 'failure'])
    .describe('What containerd sends, to whatever host it asks'),
  skipped: z
    .array(
      z.strictObject({
        reference: textField('The place'),
        from: optionalText('The object and field that names it'),
        why: textField('Why it is not tried'),
      }),
    )
    .describe('Places that are not tried'),
  findings: z
    .array(
      z.strictObject({
        severity: textField('error, warning or info'),
        message: textField('What to know'),
        fix: optionalText('What to change, in one sentence'),
      }),
    )
    .describe('What to know and to fix'),
});

const NAMESPACE = z.strictObject({
  name: textField('Its name'),
  secrets: z
    .array(
      z.strictObject({
        name: textField('Its name'),
        type: textField('Its type'),
        keys: textsField('Keys of its entries'),
        fault: optionalText('Why it cannot be read'),
        copy: z
          .strictObject({
            profile: textField('The profile that brings it'),
            of: textField('The Secrets that it is made of'),
          })
          .describe('Of a copy: where it comes from')
          .exactOptional(),
      }),
    )
    .describe('Its pull secrets'),
  grants: z
    .array(
      z.strictObject({
        name: textField('Its name'),
        secrets: textsField('Secrets that it is for'),
        profiles: textsField('Profiles that may bring them'),
        to: textsField('Namespaces that they may be brought to'),
        problems: textsField('What is wrong with it'),
      }),
    )
    .describe('Its grants'),
  pulls: countField('Images of its workloads'),
  verdict: REPORT_VERDICT,
});

const MIRRORS = z.strictObject({
  state: z
    .enum(['rendered', 'kept', 'unknown'])
    .describe('rendered: nodes follow the objects; kept: they follow a file that was read'),
  summary: textField('The same in one sentence'),
  rules: z
    .array(
      z.strictObject({
        source: textField('The source'),
        blocked: flagField('Whether the source itself is never asked'),
        from: textsField('Where it is written'),
        mirrors: z
          .array(
            z.strictObject({
              location: textField('The mirror'),
              pullFrom: textField('For which references it is asked'),
              from: optionalText('Where it is written'),
            }),
          )
          .describe('Its mirrors, in order'),
      }),
    )
    .describe('In the order of the file that the operator writes'),
  refusals: z
    .array(
      z.strictObject({
        severity: z.enum(['error', 'warning']).describe('error: the object is refused'),
        code: textField('What is wrong: stable, for programs'),
        object: textField('The object'),
        message: textField('What is wrong, for people'),
      }),
    )
    .describe('What is wrong with mirror sets'),
});

/** Field `clusters[]` of a report. */
export const REPORT_CLUSTER: z.ZodType<JsonOf<ReportCluster>> = formPart<ReportCluster>()(
  z.strictObject({
    name: textField('Its name'),
    verdict: REPORT_VERDICT,
    systems: z
      .array(
        z.strictObject({
          system: z.enum(REPORT_SYSTEMS).describe('The system; pulls: whether pods get their images'),
          verdict: REPORT_VERDICT,
          summary: textField('The same in one sentence'),
        }),
      )
      .describe('Systems that are in use'),
    nodes: NODES.describe('Its nodes'),
    runtimes: textsField('Container runtimes of its nodes, sorted; empty where none says so'),
    keys: z.array(KEY).describe('Entries of the pull secrets that nodes get'),
    pulls: z.array(PULL).describe('One for each image of a workload or pod'),
    pullsLeftOut: countField('Pulls in order that are left out, so that the report stays small'),
    namespaces: z.array(NAMESPACE).describe('Namespaces with a pull secret, a grant or a workload'),
    mirrors: MIRRORS.describe('Its mirror sets'),
  }),
);

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
        commands: textsField('Commands to run, as they are').exactOptional(),
        pull: optionalText('The id of the pull that shows it'),
      }),
    )
    .describe('Where it is'),
});

export const REPORT_FORMS: readonly OutputForm[] = [
  form<Report>('always')(
    z.strictObject({
      version: z.literal(1).describe('Of this shape; another number is another shape'),
      madeAt: textField('When it was made, RFC 3339'),
      source: textField('The folder or context that was looked at'),
      clusters: z.array(REPORT_CLUSTER).describe('The worst first'),
      problems: z.array(CAUSE).describe('Problems by their cause, the worst first'),
      unread: textsField('What could not be read'),
    }),
  ),
];

// What `status --output json` prints.

export const STATUS_FORMS: readonly OutputForm[] = [
  form<readonly StatusRow[]>('always; with --watch, one document after the other')(
    z.array(
      z.strictObject({
        system: textField('The system that it belongs to'),
        object: textField('The object, such as PullSecretProfile/team'),
        state: z
          .enum(['Ready', 'Attention', 'Progressing', 'Unknown'])
          .describe('Unknown: nothing has reported on it yet'),
        reason: textField('Why: see conditions.md'),
        message: textField('The same for people'),
      }),
    ),
  ),
];
