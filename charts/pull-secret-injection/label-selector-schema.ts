/** metav1.LabelSelector as a schema, bounded so that rules over it stay cheap. */
import { z } from 'zod';
import {
  MAX_SELECTOR_EXPRESSIONS,
  MAX_SELECTOR_LABELS,
  MAX_SELECTOR_VALUES,
} from '../../runtime/rules/injection/own-kind.ts';

const key = z.string().min(1).max(317);
const value = z
  .string()
  .max(63)
  .regex(/^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/);

/**
 * Without strict field validation (`--validate=false`, most clients) the API server drops what a schema does not know, and of
 * `{matchlabels: …}` would stay `{}`, which selects everything. So unknown fields are kept here, and refused by what must be there.
 */
const NOTHING_UNKNOWN = {
  'x-kubernetes-preserve-unknown-fields': true,
  anyOf: [
    { maxProperties: 0 },
    { maxProperties: 1, required: ['matchLabels'] },
    { maxProperties: 1, required: ['matchExpressions'] },
    { maxProperties: 2, required: ['matchLabels', 'matchExpressions'] },
  ],
};

/**
 * Keeps a map whole: of `{team: null}` (a template without its value) the API server would drop the label, without a word even under strict
 * validation, and `{}` selects everything. So a null may come in, and is refused by the rule beside it.
 */
export const NO_NULLS: { readonly rule: string; readonly message: string } = {
  rule: 'self.all(k, dyn(self[k]) != null)',
  message: 'a value must not be null: write it, or leave its key out',
};

/** `matchLabels` and `matchExpressions`, checked as the API server checks the selectors of built-in kinds. */
export function labelSelectorSchema(): z.ZodType {
  return z
    .strictObject({
      matchLabels: z
        .record(z.string().max(317), value.meta({ nullable: true }))
        .meta({ maxProperties: MAX_SELECTOR_LABELS, 'x-kubernetes-validations': [NO_NULLS] })
        .describe('Labels that an object must have, all of them')
        .optional(),
      matchExpressions: z
        .array(
          z
            .strictObject({
              key: key.describe('Key of a label'),
              operator: z
                .enum(['In', 'NotIn', 'Exists', 'DoesNotExist'])
                .describe('What must be the case with the label of this key'),
              values: z
                .array(value)
                .max(MAX_SELECTOR_VALUES)
                .meta({ 'x-kubernetes-list-type': 'atomic' })
                .describe('Values of the label, for In and NotIn')
                .optional(),
            })
            .meta({
              'x-kubernetes-validations': [
                {
                  rule: "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
                  message: 'In and NotIn need values, Exists and DoesNotExist must not have any',
                },
              ],
            }),
        )
        .max(MAX_SELECTOR_EXPRESSIONS)
        .meta({ 'x-kubernetes-list-type': 'atomic' })
        .describe('Further demands on labels, which must all hold')
        .optional(),
    })
    .meta(NOTHING_UNKNOWN);
}
