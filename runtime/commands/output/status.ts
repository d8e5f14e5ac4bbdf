/** What `status --output json` prints. */
import { z } from 'zod';
import type { StatusRow } from '../../rules/diagnose/status-table.ts';
import { textField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

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
