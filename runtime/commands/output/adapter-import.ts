/** What `adapter import --output json` prints. */
import { z } from 'zod';
import type { AdapterImportOutput } from '../adapter-import.ts';
import { anything, textField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

export const ADAPTER_IMPORT_FORMS: readonly OutputForm[] = [
  form<AdapterImportOutput>('always')(
    z.strictObject({
      section: anything('The section pull-secret-adapter of a fleet: see fleet.md'),
      notes: z
        .array(
          z.strictObject({
            outcome: z
              .enum(['carried', 'unneeded', 'todo', 'changed', 'dropped'])
              .describe(
                'unneeded: has no field, and nothing is lost; todo: a step outside of the section; changed: the section wants an edit; dropped: is lost, or means something else',
              ),
            subject: textField('File or variable, and field'),
            message: textField('What became of it'),
          }),
        )
        .describe('What became of each field'),
    }),
  ),
];
