/** What `agent --once --output json` prints. */
import { z } from 'zod';
import type { PreviewFacts } from '../../global-pull-secret/agent/preview.ts';
import { countField, flagField, optionalText, textField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

export const AGENT_FORMS: readonly OutputForm[] = [
  form<PreviewFacts>('with --once')(
    z.strictObject({
      would: optionalText('With --dry-run: what would be done next'),
      restart: flagField(
        'Of a change that is under way: whether the kubelet is restarted for it',
      ).exactOptional(),
      source: optionalText('Where the pull secret was read'),
      entries: countField('Entries of the pull secret').exactOptional(),
      foreign: countField('Those of them that belong to others').exactOptional(),
      ready: flagField('Whether the file is as it should be'),
      reason: textField('Why, or why not: stable, for programs'),
      message: textField('The same for people'),
    }),
  ),
];
