/** What `validate --output json` prints. */
import { z } from 'zod';
import type { ValidateOutput } from '../validate/forms.ts';
import { countField, textField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

export const VALIDATE_FORMS: readonly OutputForm[] = [
  form<ValidateOutput>('always')(
    z.strictObject({
      judged: countField('How many things were judged'),
      problems: z
        .array(
          z.strictObject({
            severity: z.enum(['error', 'warning']).describe('With --strict, warnings fail too'),
            code: textField('What is wrong: stable, for programs'),
            file: textField('The file'),
            line: z.int().describe('Line of the object, or in the text, from 1').exactOptional(),
            column: z.int().describe('Column, from 1').exactOptional(),
            subject: textField('The object, such as Secret/web/pull; empty for a file that is no manifest'),
            path: textField('The field; empty where it is the whole object'),
            message: textField('What is wrong, for people'),
          }),
        )
        .describe('What is wrong, in the order of the files'),
    }),
  ),
];
