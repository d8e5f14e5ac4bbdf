/** The fix of a mirror set, in the outputs of `explain` and `mirrors`. */
import { z } from 'zod';
import type { MirrorFix } from '../../rules/mirrors/fix.ts';
import { KUBERNETES_OBJECT, textField } from './fields.ts';
import { formPart, type JsonOf } from './form.ts';

/** Field `fix` of a report on mirrors, and `mirrorFix` of an explanation. */
export const MIRROR_FIX: z.ZodType<JsonOf<MirrorFix>> = formPart<MirrorFix>()(
  z.strictObject({
    code: z
      .enum(['MirrorsServeDigestsOnly', 'MirrorsServeTagsOnly', 'RuntimeGivesUp'])
      .describe('What is wrong, for programs'),
    message: textField('What is wrong, naming the mirror that is skipped'),
    fix: textField('What to do, in one sentence'),
    object: KUBERNETES_OBJECT.describe('What to apply; absent where an object cannot help').exactOptional(),
  }),
);
