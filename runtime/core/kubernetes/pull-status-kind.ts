/**
 * The kind `PullStatus` (pullwright.dev/v1alpha1): where what has no status of its own reports. What is written into it is
 * built by `runtime/core/kubernetes/pull-status.ts`; this is the schema that the API server holds it against.
 */
import { z } from 'zod';
import { CATEGORY, conditionsSchema, crd } from './kind.ts';
import type { KubeObject } from './object.ts';
import { labels } from './objects.ts';
import { MAX_VERDICTS, PULL_STATUS_API_VERSION, PULL_STATUS_KIND } from './pull-status.ts';

const verdict = z.strictObject({
  subject: z.string().max(1024).describe('What is judged: a registry, an image, a node, a namespace'),
  verdict: z
    .enum(['Accepted', 'Shadowed', 'Rejected', 'Warning', 'Pending'])
    .describe('The judgement: Rejected and Shadowed have no effect, Pending may have one later'),
  reason: z.string().max(1024).describe('CamelCase, stable'),
  message: z.string().max(4096).describe('What is the case and what to do; never a credential'),
  expiresAt: z
    .string()
    .max(32)
    .meta({ format: 'date-time' })
    .exactOptional()
    .describe('Of a credential: when it ends'),
  lastOk: z
    .string()
    .max(32)
    .meta({ format: 'date-time' })
    .exactOptional()
    .describe('Of a credential: when a registry last took it'),
});

const status = z
  .strictObject({
    about: z
      .strictObject({
        apiVersion: z.string().max(316).describe('Its apiVersion'),
        kind: z.string().max(63).describe('Its kind'),
        name: z.string().max(253).describe('Its name'),
      })
      .describe('The object that this status speaks of, in the same namespace')
      .optional(),
    reporter: z.string().max(253).describe('The reconciler that speaks').optional(),
    conditions: conditionsSchema().optional(),
    verdicts: z
      .array(verdict)
      .max(MAX_VERDICTS)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe('One judgement per entry')
      .optional(),
    summary: z
      .record(z.string().max(63), z.string().max(256))
      .describe('Counts and hashes for people and programs')
      .optional(),
  })
  .optional();

const schema = z.strictObject({ status }).meta({
  description:
    'Says what became of an object that has no status of its own. Written by Pullwright; edits are lost.',
});

/** The CustomResourceDefinition of `PullStatus`. */
export function pullStatusCrd(): KubeObject {
  const [group = '', version = ''] = PULL_STATUS_API_VERSION.split('/');
  return crd({
    group,
    kind: PULL_STATUS_KIND,
    plural: 'pullstatuses',
    shortNames: ['pst'],
    categories: [CATEGORY],
    scope: 'Namespaced',
    labels: labels({ name: 'pullstatus', component: 'crd' }),
    versions: [
      {
        name: version,
        schema,
        printerColumns: [
          { name: 'About', type: 'string', jsonPath: '.status.about.kind' },
          { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
          { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
          {
            name: 'Status',
            type: 'string',
            jsonPath: '.status.conditions[?(@.type=="Ready")].message',
            priority: 1,
          },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
      },
    ],
  });
}
