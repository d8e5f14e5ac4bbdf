/** What `explain --output json` prints. */
import { z } from 'zod';
import type { ExplainOutput } from '../explain/explain.ts';
import { flagField, KUBERNETES_OBJECT, optionalText, textField, textsByName, textsField } from './fields.ts';
import { form, type OutputForm } from './form.ts';
import { MIRROR_FIX } from './mirror-fix.ts';

const ENTRY = {
  source: textField('The Secret or file that has it, such as Secret/web/pull'),
  key: textField('Its key, as it is written there'),
  origin: optionalText('For an entry of a file that was merged, the Secret that it came from'),
  position: z
    .strictObject({
      line: z.int().describe('Line, from 1'),
      column: z.int().describe('Column, from 1'),
    })
    .describe('Where it stands in the decoded document'),
};

const KIND = z.enum(['mirror', 'source']).describe('source: the place that the image itself names');

const SENT = z.discriminatedUnion('what', [
  z.strictObject({ what: z.literal('kubelet').describe('What is sent') }),
  z.strictObject({
    what: z.literal('entry').describe('What is sent'),
    entry: z.strictObject(ENTRY).describe('The entry of the file of the node'),
    username: textField('Its user'),
    rivals: textsField('Other entries that could be meant'),
  }),
  z.strictObject({
    what: z.literal('helper').describe('What is sent'),
    source: textField('The file that names the helper'),
    helper: textField('The credential helper that is asked'),
  }),
  z.strictObject({
    what: z.literal('nothing').describe('What is sent'),
    why: textField('Why it comes to nothing, or to a failure'),
  }),
  z.strictObject({
    what: z.literal('failure').describe('What is sent'),
    why: textField('Why it comes to nothing, or to a failure'),
  }),
]);

const KUBELET = z.strictObject({
  blockedBy: z
    .strictObject({ source: textField('The Secret'), why: textField('What is wrong with it') })
    .describe('A Secret that cannot be read, and so fails the pod for every image')
    .exactOptional(),
  tried: z
    .array(
      z.strictObject({
        ...ENTRY,
        username: textField('Its user'),
        by: z.enum(['match', 'hub']).describe('match: by its key; hub: as a name of Docker Hub'),
        empty: flagField('It has neither user nor password, and is tried all the same'),
        doubt: optionalText('Why a registry will refuse it, as far as the entry itself says so'),
      }),
    )
    .describe('Credentials, in the order in which they are tried'),
  unused: z
    .array(
      z.strictObject({
        ...ENTRY,
        why: textField('Why it is not used for the image'),
        near: flagField('It is about the same registry'),
      }),
    )
    .describe('Entries that are not used'),
  anonymous: flagField('Whether an attempt without a credential is made'),
});

const ONE = z.strictObject({
  image: textField('The image, with its tag or digest'),
  repository: textField('The same without them'),
  secrets: z
    .array(
      z.strictObject({
        name: textField('Its name'),
        listedBy: textField('Who lists it, such as ServiceAccount/web/default'),
        state: z
          .enum(['found', 'missing', 'ignored', 'unknown'])
          .describe('ignored: of another type, or without data; unknown: not all could be read'),
      }),
    )
    .describe('Secrets that the pod lists, in its order'),
  node: optionalText('The file of the node that the kubelet and CRI-O read'),
  kubelet: KUBELET.describe('What the kubelet chooses'),
  places: z
    .array(
      z.strictObject({
        reference: textField('Where the image is asked for'),
        kind: KIND,
        from: optionalText('The object and field that names the place'),
        crio: SENT.describe('What CRI-O sends there'),
      }),
    )
    .describe('In the order in which CRI-O tries them'),
  skipped: z
    .array(
      z.strictObject({
        reference: textField('The place'),
        kind: KIND,
        from: optionalText('The object and field that names the place'),
        why: textField('Why it is not tried'),
      }),
    )
    .describe('Places that are not tried'),
  containerd: SENT.describe('What containerd sends, to whatever host it asks'),
  verification: textField('Whether the kubelet verifies credentials for images that are on the node'),
  mirrorFix: MIRROR_FIX.describe(
    'What is wrong where no mirror is tried although there are some',
  ).exactOptional(),
  findings: z
    .array(
      z.strictObject({
        severity: z.enum(['error', 'warning', 'info']).describe('An error makes the exit code 1'),
        message: textField('What to know'),
        fix: optionalText('What to change, and where, in one sentence'),
        object: KUBERNETES_OBJECT.describe('An object to apply').exactOptional(),
      }),
    )
    .describe('What to know and to fix, errors first'),
  files: textsByName('Where sources stand in the folder, by their names; empty for a cluster'),
});

export const EXPLAIN_FORMS: readonly OutputForm[] = [
  form<ExplainOutput>('of one image')(ONE),
  form<readonly ExplainOutput[]>('of several images')(z.array(ONE)),
];
