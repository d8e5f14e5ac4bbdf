/** What `import --output json` prints. */
import { z } from 'zod';
import type { Imported } from '../../rules/import/types.ts';
import { anything, countField, textField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

export const IMPORT_FORMS: readonly OutputForm[] = [
  form<Imported>('always')(
    z.strictObject({
      fleet: anything('A fleet, as synth --fleet reads it: see fleet.md'),
      grants: z
        .array(
          z.strictObject({
            namespace: textField('Namespace of the Secret'),
            name: textField('Name of the Secret'),
            to: textField('Value of its annotation pullwright.dev/grant-namespaces'),
          }),
        )
        .describe('Consents that owners of Secrets have to give; they are not given here'),
      notes: z
        .array(
          z.strictObject({
            outcome: z
              .enum(['carried', 'changed', 'kept', 'dropped'])
              .describe('kept: it goes on working where it stands'),
            subject: textField('The object, such as Secret/hub/pull'),
            message: textField('What became of it'),
          }),
        )
        .describe('What became of each object'),
      others: z
        .record(z.string(), countField('How many'))
        .describe('How many objects of each kind have nothing to do with it'),
    }),
  ),
];
