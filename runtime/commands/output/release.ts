/** What `release --output json` prints. */
import { z } from 'zod';
import { PLANES } from '../../registry-overrides/planes.ts';
import type { ReleaseDifference } from '../../registry-overrides/release-difference.ts';
import type { ComponentOutput, ReleaseOutput } from '../release/text.ts';
import { anything, countField, textField, textsByName } from './fields.ts';
import { form, type OutputForm } from './form.ts';

const GAP = z.strictObject({
  component: textField('Its name'),
  image: textField('As the release lists it'),
  reference: textField('The place where it was looked for'),
  kind: z.enum(['mirror', 'source']).describe('source: only for images that no mirror is for'),
  for: z.array(z.enum(PLANES)).describe('Who asks there'),
  verdict: textField('What is wrong: stable, for programs'),
  message: textField('The same for people'),
});

export const RELEASE_FORMS: readonly OutputForm[] = [
  form<ReleaseOutput>('of one release')(
    z.strictObject({
      version: textField('Its version'),
      from: textField('The reference that was read'),
      skipped: z
        .array(z.strictObject({ reference: textField('The place'), message: textField('Why it did not do') }))
        .describe('Places that were tried before'),
      digest: textField('Its digest'),
      architecture: textField('Its architecture'),
      signature: z
        .strictObject({
          state: z
            .enum(['Verified', 'Rejected', 'Unknown'])
            .describe('Unknown: nothing was given to judge by'),
          message: textField('The same for people'),
        })
        .describe('What its signature says'),
      components: textsByName('Images by the names of components'),
      check: z
        .strictObject({
          components: countField('How many images were looked for'),
          places: countField('At how many places'),
          gaps: z.array(GAP).describe('Places that do not have, or do not give, what is asked of them'),
          imageSet: anything(
            'An ImageSetConfiguration for oc-mirror; absent where nothing is known to be missing',
          ).exactOptional(),
        })
        .describe('With --check: whether its images are there')
        .exactOptional(),
    }),
  ),
  form<ComponentOutput>('with --image-for')(
    z.strictObject({ component: textField('Its name'), image: textField('Its image') }),
  ),
  form<ReleaseDifference>('of two releases')(
    z.strictObject({
      from: textField('Version of the first'),
      to: textField('Version of the second'),
      added: textsByName('Images of components that only the second has'),
      removed: textsByName('Images of components that only the first has'),
      changed: z
        .record(
          z.string(),
          z.strictObject({ from: textField('Image in the first'), to: textField('Image in the second') }),
        )
        .describe('Components with another image'),
      unchanged: countField('How many components have the same image'),
    }),
  ),
];
