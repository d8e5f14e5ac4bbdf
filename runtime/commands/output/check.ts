/** What `check --output json` prints. */
import { z } from 'zod';
import type { CheckOutput } from '../check/check.ts';
import { optionalText, textField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

const LEVELS = ['ok', 'warn', 'fail'] as const;

export const CHECK_FORMS: readonly OutputForm[] = [
  form<CheckOutput>('always')(
    z.strictObject({
      level: z.enum(LEVELS).describe('The worst level of the lines'),
      lines: z
        .array(
          z.strictObject({
            check: textField('What was looked at, such as kubernetes or crds: stable, for programs'),
            level: z
              .enum(LEVELS)
              .describe(
                'fail: what is rendered does not work there; warn: it works, and somebody should know',
              ),
            message: textField('What was found'),
            fix: optionalText('What to do, in one sentence or command'),
          }),
        )
        .describe('One for each thing that was looked at'),
    }),
  ),
];
