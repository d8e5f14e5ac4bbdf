/** What `verify --output json` prints. */
import { z } from 'zod';
import { VERDICTS } from '../../rules/diagnose/verify-report.ts';
import type { VerifyOutput } from '../verify/verify.ts';
import { countField, optionalText, textField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

const PLACE = {
  source: textField('The Secret or file that has it, such as Secret/web/pull'),
  key: textField('Its key, as it is written there'),
};

export const VERIFY_FORMS: readonly OutputForm[] = [
  form<VerifyOutput>('always')(
    z.strictObject({
      checkedAt: textField('When registries were asked, RFC 3339'),
      images: z
        .array(
          z.strictObject({
            image: textField('The image'),
            usedBy: textField('One that uses it, such as Deployment/web/shop'),
            pullable: z
              .enum(['yes', 'no', 'unknown'])
              .describe('Whether some place gives it; unknown: no answer says so either way'),
            attempts: z
              .array(
                z.strictObject({
                  reference: textField('Where it was asked for'),
                  kind: z
                    .enum(['mirror', 'source'])
                    .describe('source: the place that the image itself names'),
                  credential: z
                    .strictObject(PLACE)
                    .describe('The credential that was sent; absent where none was')
                    .exactOptional(),
                  verdict: z.enum(VERDICTS).describe('What the registry says of it'),
                  message: textField('The same for people'),
                }),
              )
              .describe('In the order in which they are made'),
          }),
        )
        .describe('Images, and what each place answered'),
      credentials: z
        .array(
          z.strictObject({
            ...PLACE,
            verdict: z.enum(VERDICTS).describe('Its worst answer, the absence of an image left out'),
            message: textField('The same for people'),
            expiresAt: optionalText('When it ends, RFC 3339; absent where it does not say'),
            kindOfCredential: textField('What it looks like, such as a token'),
            images: countField('For how many images it was sent'),
          }),
        )
        .describe('Credentials, the worst first'),
      endingSoon: z
        .array(z.strictObject(PLACE))
        .describe('Credentials that end within the days of --warn-days'),
    }),
  ),
];
