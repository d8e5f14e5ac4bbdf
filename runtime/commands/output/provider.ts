/** What `provider --output json` prints. */
import { z } from 'zod';
import type { CheckReport } from '../../credential-provider/plugin/check.ts';
import type { DryRunReport } from '../../credential-provider/plugin/dry-run.ts';
import { flagField, optionalText, textField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

export const PROVIDER_FORMS: readonly OutputForm[] = [
  form<DryRunReport>('with --dry-run')(
    z.strictObject({
      image: textField('The image of the request'),
      namespace: optionalText('Namespace of the pod'),
      sources: z
        .array(
          z.strictObject({
            repository: textField('Where the image is asked for'),
            kind: textField('mirror or source'),
            key: optionalText('The key of the entry that is taken for it'),
            secret: optionalText('The Secret that has that entry'),
          }),
        )
        .describe('Places that the image is pulled from'),
      file: optionalText('The auth file that would be written'),
      content: z.unknown().describe('That file, with every credential as [redacted]').optional(),
    }),
  ),
  form<CheckReport>('with --check, on one line')(
    z.strictObject({
      ok: flagField('Whether a run for the kubelet would get as far as the Secrets'),
      message: textField('What was found, or what is wrong and what to do'),
    }),
  ),
];
