/** What a fleet may say of the report as a page. */
import { z } from 'zod';
import { parseGoDuration } from '../runtime/rules/go/duration.ts';
import { dnsLabel, dnsName, durationField } from './shared/fields.ts';
import type { ReportPageSettings } from './shared/report-page.ts';

/** Field `reconciler.reports`. */
export const reportPageField: z.ZodType<ReportPageSettings, ReportPageSettings> = z.strictObject({
  certificates: z
    .discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('service-ca').describe("OpenShift's service CA makes it") }),
      z.strictObject({
        kind: z.literal('cert-manager').describe('cert-manager makes it'),
        issuer: z
          .strictObject({
            kind: z.enum(['Issuer', 'ClusterIssuer']).describe('Its kind'),
            name: dnsName().describe('Its name'),
          })
          .describe('The issuer of cert-manager'),
      }),
      z.strictObject({ kind: z.literal('manual').describe('A person makes it') }),
    ])
    .describe('Who makes Secret pullwright-reports-tls: the page is served over TLS alone'),
  every: durationField()
    .refine((text) => {
      const nanoseconds = parseGoDuration(text) ?? 0;
      return nanoseconds >= 5e9 && nanoseconds <= 3600e9;
    }, 'expected between "5s" and "1h"')
    .exactOptional()
    .describe('It is made again at most so often. Default: 60s'),
  fromNamespaces: z
    .array(dnsLabel())
    .min(1)
    .exactOptional()
    .describe('Namespaces whose pods may reach it. Default: none, only kubectl port-forward'),
});
