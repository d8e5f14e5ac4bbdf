/** The kind `PullSecretGrant`: schema, rules that span fields, and columns of `kubectl get`. */
import { z } from 'zod';
import {
  GRANT_API_VERSION,
  GRANT_KIND,
  MAX_GRANTED_NAMESPACES,
  MAX_GRANTED_PROFILES,
  MAX_GRANTED_SECRETS,
} from '../../runtime/rules/injection/pull-secret-grant.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { CATEGORY, conditionsSchema, crd, observedGenerationSchema } from '../shared/crd.ts';
import { labels } from '../shared/metadata.ts';
import { labelSelectorSchema } from './label-selector-schema.ts';

const named = (description: string): z.ZodType =>
  z.strictObject({ name: z.string().min(1).max(253).describe(description) });

const listed = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] };

const spec = z
  .strictObject({
    secrets: z
      .array(named('Name of a Secret in the namespace of the grant'))
      .min(1)
      .max(MAX_GRANTED_SECRETS)
      .meta(listed)
      .describe('What may be copied; it need not exist yet'),
    profiles: z
      .array(named('Name of a PullSecretProfile, sidecarset/NAME, or * for any of them'))
      .min(1)
      .max(MAX_GRANTED_PROFILES)
      .meta(listed)
      .describe('Who may bring it'),
    namespaces: z
      .array(
        z
          .string()
          .min(1)
          .max(63)
          .regex(/^[a-z0-9*?-]+$/),
      )
      .max(MAX_GRANTED_NAMESPACES)
      .meta({ 'x-kubernetes-list-type': 'set' })
      .describe(
        'Where to: names, or patterns with * and ?. A pattern is no consent where users choose the names of namespaces',
      )
      .optional(),
    namespaceSelector: labelSelectorSchema()
      .describe(
        'Where to, by labels of the namespace that the operator of the cluster trusts; {} is everywhere',
      )
      .optional(),
  })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: 'has(self.namespaceSelector) || (has(self.namespaces) && size(self.namespaces) > 0)',
        message: 'namespaces or namespaceSelector must say where to',
      },
    ],
  });

const status = z
  .strictObject({
    observedGeneration: observedGenerationSchema(-1),
    conditions: conditionsSchema().optional(),
  })
  .meta({ default: { observedGeneration: -1 } })
  .optional();

/** The CustomResourceDefinition of `PullSecretGrant`. */
export function pullSecretGrantCrd(): KubeObject {
  const [group = '', version = ''] = GRANT_API_VERSION.split('/');
  const condition = (field: string): string => `.status.conditions[?(@.type=="Ready")].${field}`;
  return crd({
    group,
    kind: GRANT_KIND,
    shortNames: ['pgrant'],
    categories: [CATEGORY],
    scope: 'Namespaced',
    labels: labels({ name: 'pullsecretgrant', component: 'crd' }),
    versions: [
      {
        name: version,
        schema: z.strictObject({ spec, status }).meta({
          description:
            'The consent of the owner of Secrets: which of the Secrets beside it may be brought, by which profiles, to which namespaces. It outlives the Secrets; deleting it takes the copies away.',
        }),
        printerColumns: [
          { name: 'Ready', type: 'string', jsonPath: condition('status') },
          { name: 'Reason', type: 'string', jsonPath: condition('reason') },
          { name: 'Message', type: 'string', jsonPath: condition('message'), priority: 1 },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
      },
    ],
  });
}
