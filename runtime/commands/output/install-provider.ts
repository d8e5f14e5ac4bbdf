/** What `install-provider --output json` prints. */
import { z } from 'zod';
import type { InstallerReport } from '../../credential-provider/installer/preview.ts';
import { flagField, optionalText, textField, textsField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

export const INSTALL_PROVIDER_FORMS: readonly OutputForm[] = [
  form<InstallerReport>('with --once or --dry-run')(
    z.strictObject({
      node: textField('Name of the node'),
      ready: flagField('Whether the node is as it should be'),
      reason: textField('Why, or why not: stable, for programs'),
      message: textField('The same for people'),
      would: z
        .array(
          z.strictObject({
            action: z.enum(['create', 'replace', 'remove', 'reload', 'restart']).describe('What is done'),
            what: textField('A path of the host, or a unit'),
            details: textsField('What differs, by meaning'),
          }),
        )
        .describe('With --dry-run: what would happen, in order')
        .exactOptional(),
      resumes: optionalText('With --dry-run: what is to be done first, when a run was interrupted'),
      entries: z
        .array(
          z.strictObject({
            pattern: textField('Of matchImages'),
            verdict: textField('Rendered, or why it is left out: stable, for programs'),
            message: textField('The same for people'),
          }),
        )
        .describe('Patterns of the configuration')
        .exactOptional(),
    }),
  ),
];
