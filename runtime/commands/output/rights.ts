/** What `rights --output json` prints. */
import { z } from 'zod';
import type { RightsOutput } from '../rights.ts';
import { flagField, optionalText, textField, textsField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

export const RIGHTS_FORMS: readonly OutputForm[] = [
  form<RightsOutput>('always')(
    z.strictObject({
      rights: z
        .array(
          z.strictObject({
            account: textField('Who has it, such as ServiceAccount pullwright-system/pullwright-reconciler'),
            power: textField('What it is, such as read-secrets: stable, for programs'),
            can: textField('The same in words'),
            namespace: optionalText('Where; absent: everywhere'),
            names: textsField('Of which objects; absent: whatever the name').exactOptional(),
            resources: textsField('Of which resources'),
            verbs: textsField('By which verbs'),
            by: textsField('Roles, the place of the rule in each, and bindings'),
            boundBy: z
              .array(
                z.strictObject({
                  policy: textField('Name of the ValidatingAdmissionPolicy'),
                  only: textsField('What its validations say to whoever is refused'),
                  unless: textsField('Why some requests pass it by'),
                }),
              )
              .describe('Policies that bound it'),
            reason: optionalText('Why it is that wide, where it is'),
            wide: flagField(
              'It reaches into every namespace, or to objects without one whatever their name, or it leads to other rights',
            ),
          }),
        )
        .describe('Rights of accounts; with --baseline, those that are more'),
    }),
  ),
];
