/**
 * The kind `PullStatus` (pullwright.dev/v1alpha1): the status of objects that have none themselves.
 * `runtime/core/kubernetes/pull-status.ts` builds its content; the API server validates it against this schema.
 */
import { z } from 'zod';
import { conditionsSchema, defineKind } from './kind.ts';
import type { KubeObject } from './object.ts';
import { MAX_VERDICTS, PULL_STATUS } from './pull-status.ts';

const time = z.string().max(32).meta({ format: 'date-time' }).exactOptional();

const verdict = z.strictObject({
  subject: z.string().max(1024).describe('Subject: a registry, an image, a node, a namespace'),
  verdict: z
    .enum(['Accepted', 'Shadowed', 'Rejected', 'Warning', 'Pending'])
    .describe('The verdict: Rejected and Shadowed have no effect, Pending may have one later'),
  reason: z.string().max(1024).describe('CamelCase, stable'),
  message: z.string().max(4096).describe('State and remedy; never a credential'),
  expiresAt: time.describe('Of a credential: when it expires'),
  lastOk: time.describe('Of a credential: when a registry last accepted it'),
});

const status = z
  .strictObject({
    about: z
      .strictObject({
        apiVersion: z.string().max(316).describe('Its apiVersion'),
        kind: z.string().max(63).describe('Its kind'),
        name: z.string().max(253).describe('Its name'),
      })
      .describe('The object that this status describes, in the same namespace')
      .optional(),
    reporter: z.string().max(253).describe('The reconciler that reports').optional(),
    conditions: conditionsSchema().optional(),
    verdicts: z
      .array(verdict)
      .max(MAX_VERDICTS)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe('One verdict per entry')
      .optional(),
    summary: z
      .record(z.string().max(63), z.string().max(256))
      .describe('Counts and hashes for people and programs')
      .optional(),
  })
  .optional();

/** The CustomResourceDefinition of `PullStatus`. */
export function pullStatusCrd(): KubeObject {
  return defineKind({
    kind: PULL_STATUS.kind,
    plural: 'pullstatuses',
    shortName: 'pst',
    scope: 'Namespaced',
    description:
      'Reports the status of an object that has no status field. Written by Pullwright; edits are overwritten.',
    columns: [{ name: 'About', type: 'string', jsonPath: '.status.about.kind' }],
    messageColumn: 'Status',
    status: () => status,
  }).crd();
}
