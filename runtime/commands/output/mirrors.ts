/** What `mirrors --output json` prints. */
import { z } from 'zod';
import { PLANES } from '../../registry-overrides/planes.ts';
import type { InUseOutput, MirrorsOutput } from '../mirrors.ts';
import { countField, flagField, optionalText, textField, textsField } from './fields.ts';
import { form, type OutputForm } from './form.ts';
import { MIRROR_FIX } from './mirror-fix.ts';

const CLUSTER = textField('Name of the cluster');
const WHO = z.array(z.enum(PLANES)).describe('Who asks for it');

const CHANGE = z.strictObject({
  summary: textField('What nodes do, in one sentence'),
  changedFiles: textsField('Files of the nodes that change, sorted').exactOptional(),
  actions: z
    .array(z.enum(['Reboot', 'Reload crio.service', 'Special']))
    .describe('Special reloads CRI-O, and drains where the change is not safe')
    .exactOptional(),
  drain: flagField('Whether nodes drain').exactOptional(),
  reboot: flagField('Whether nodes reboot').exactOptional(),
  because: optionalText('What makes the drain necessary'),
});

const CANDIDATE = z.strictObject({
  reference: textField('Where the image is asked for'),
  kind: z.enum(['mirror', 'source']).describe('source: the place that the image itself names'),
  from: optionalText('The object and field that names it'),
  skipped: z
    .strictObject({ reason: textField('For programs'), message: textField('For people') })
    .describe('Why it is not tried; absent where it is')
    .exactOptional(),
  probe: z
    .strictObject({
      verdict: textField('Valid, or what is wrong: stable, for programs'),
      message: textField('The same for people'),
      digest: optionalText('Digest of the image there'),
    })
    .describe('With --probe: what its registry said')
    .exactOptional(),
});

const REPORT = z.strictObject({
  image: textField('The image, with its tag or digest'),
  written: optionalText('As it was asked for, where that is a short name'),
  for: z.array(z.enum(PLANES)).describe('For whom this is the answer'),
  given: flagField('Whether there was any mirror set or file of a node to go by'),
  nodes: z
    .strictObject({
      state: z
        .enum(['rendered', 'kept', 'unknown'])
        .describe('rendered: nodes follow the objects; kept: they follow a file that was read'),
      summary: textField('The same in one sentence'),
    })
    .describe('By what nodes go; absent where no nodes pull')
    .exactOptional(),
  rule: z
    .strictObject({ source: textField('The source'), from: textsField('Where it is written') })
    .describe('The rule that decides')
    .exactOptional(),
  candidates: z
    .array(CANDIDATE)
    .describe('In the order in which they are tried; what is not tried comes last'),
  refusal: optionalText('Why the runtime pulls from nowhere, in its own words'),
  fix: MIRROR_FIX.describe('What is wrong, and what to do').exactOptional(),
  problems: textsField('Entries of mirror sets that cannot be used'),
  lookUp: z
    .strictObject({
      release: optionalText('For a release image: the first mirror that has it; absent where none has it'),
      component: textField('For a component of a release: the first mirror, whether it has it or not'),
    })
    .describe('With --probe: where the control plane operator and the ignition server find the image')
    .exactOptional(),
});

const IN_USE = z.strictObject({
  images: countField('How many images are in use'),
  changed: z
    .array(
      z.strictObject({
        image: textField('The image'),
        usedBy: textsField('By whom, such as Deployment/web/shop'),
        for: WHO,
        before: textsField('Places now, in the order in which they are asked'),
        after: textsField('Places after the change, in the order in which they are asked'),
        lost: flagField('No place is left that may be asked'),
        withoutCredential: textsField(
          "New mirrors for which the cluster's pull secret has no entry; empty where no secret is known",
        ),
      }),
    )
    .describe('Images whose places change'),
});

export const MIRRORS_FORMS: readonly OutputForm[] = [
  form<MirrorsOutput>('of images')(
    z.strictObject({
      cluster: CLUSTER,
      change: CHANGE.describe('With --what-if: what the change does to nodes').exactOptional(),
      reports: z.array(REPORT).describe('For each image, one for those that get the same answer'),
    }),
  ),
  form<InUseOutput>('with --in-use')(
    z.strictObject({
      cluster: CLUSTER,
      change: CHANGE.describe('What the change does to nodes'),
      inUse: IN_USE.describe('What it does to images that are in use'),
    }),
  ),
];
