/** The verdict of a cluster, a system, a pull and a namespace, in what `report --output json` prints. */
import { z } from 'zod';
import type { ReportVerdict } from '../../rules/report/types.ts';
import { formPart } from './form.ts';

export const REPORT_VERDICT: z.ZodType<ReportVerdict> = formPart<ReportVerdict>()(
  z
    .enum(['broken', 'attention', 'unknown', 'ok'])
    .describe('broken: pods or nodes go without; unknown: nothing has shown that it is in order'),
);
