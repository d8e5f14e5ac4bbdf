/** What `uninstall --output json` prints. */
import { z } from 'zod';
import { STAGES } from '../../uninstall/plan.ts';
import type { UninstallOutput, UninstallPlanOutput } from '../uninstall.ts';
import { countField, textField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

const KEPT = z
  .array(z.strictObject({ object: textField('The object'), reason: textField('Why it stays') }))
  .describe('Objects that stay');

export const UNINSTALL_FORMS: readonly OutputForm[] = [
  form<UninstallPlanOutput>('with --dry-run')(
    z.strictObject({
      stages: z
        .array(
          z.strictObject({
            name: z.enum(STAGES).describe('Its name'),
            removals: z
              .array(
                z.strictObject({
                  object: textField('The object'),
                  do: z
                    .enum(['delete', 'leave-nodes', 'release'])
                    .describe(
                      'leave-nodes: removed after its nodes have been left; release: only our fields are given up',
                    ),
                }),
              )
              .describe('What happens to which objects'),
          }),
        )
        .describe('In order; stages without an object are left out'),
      kept: KEPT,
    }),
  ),
  form<UninstallOutput>('when it is done')(
    z.strictObject({ removed: countField('How many objects were removed'), kept: KEPT }),
  ),
];
