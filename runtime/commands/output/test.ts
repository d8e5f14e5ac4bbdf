/** What `test --output json` prints. */
import { z } from 'zod';
import type { TestOutcome } from '../test.ts';
import { optionalText, textField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

export const TEST_FORMS: readonly OutputForm[] = [
  form<readonly TestOutcome[]>('always')(
    z.array(
      z.strictObject({
        file: textField('The file of the expectation'),
        name: textField('Its name'),
        failure: optionalText('Why it does not hold; absent when it does'),
      }),
    ),
  ),
];
