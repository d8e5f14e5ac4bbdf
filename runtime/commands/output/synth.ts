/** What `synth --output json` prints. */
import { z } from 'zod';
import type { SynthOutput } from '../synth/report.ts';
import { countField, textField, textsField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

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
