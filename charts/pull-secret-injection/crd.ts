/** The kind `PullSecretProfile`: schema, rules that span fields, and columns of `kubectl get`. */
import { z } from 'zod';
import {
  MAX_SECRETS,
  MAX_SOURCES,
  MAX_SOURCES_IN_ALL,
  PROFILE_API_VERSION,
  PROFILE_KIND,
  PROFILE_MODES,
} from '../../runtime/rules/injection/profile.ts';
import {
  DEFAULT_REMOVE_AFTER,
  MAX_ANNOTATION_LENGTH,
  MAX_COPY_MARKS,
  ON_SOURCE_DELETED,
  RESERVED_KEYS,
  RESERVED_PREFIX,
} from '../../runtime/rules/injection/profile-copies.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { CATEGORY, conditionsSchema, crd, observedGenerationSchema } from '../shared/crd.ts';
import { labels } from '../shared/metadata.ts';
import { labelSelectorSchema, NO_NULLS } from './label-selector-schema.ts';

const secretName = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/);

const source = z.strictObject({
  namespace: z
    .string()
    .min(1)
    .max(63)
    .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/)
    .describe('Namespace of the source Secret'),
  name: secretName.describe('Name of the source Secret, of type kubernetes.io/dockerconfigjson'),
});

const secret = z.strictObject({
  name: secretName.describe('Name of the Secret in the namespace of the pod'),
  sources: z
    .array(source)
    .max(MAX_SOURCES)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe(
      'Merged in this order, the first one wins. Each must be granted, by a PullSecretGrant beside it or by its annotation pullwright.dev/grant-namespaces. Empty: the Secret is brought by somebody else',
    )
    .optional(),
  onCollision: z
    .enum(['FirstWins', 'Fail'])
    .meta({ default: 'FirstWins' })
    .describe(
      'Two sources name one registry with different credentials: the first one counts, or nothing is written',
    )
    .optional(),
});

const marks = (max: number): z.ZodType =>
  z.record(z.string(), z.string().max(max).meta({ nullable: true })).meta({
    maxProperties: MAX_COPY_MARKS,
    'x-kubernetes-validations': [
      NO_NULLS,
      {
        rule: `self.all(k, !k.startsWith('${RESERVED_PREFIX}') && !(k in [${RESERVED_KEYS.map((key) => `'${key}'`).join(', ')}]))`,
        message: `keys of ${RESERVED_PREFIX}, ${RESERVED_KEYS.join(' and ')} are reserved`,
      },
    ],
  });

const copies = z
  .strictObject({
    labels: marks(63).describe('Labels of the copies').optional(),
    annotations: marks(MAX_ANNOTATION_LENGTH).describe('Annotations of the copies').optional(),
    onSourceDeleted: z
      .enum(ON_SOURCE_DELETED)
      .meta({ default: 'Keep' })
      .describe('What becomes of the copies when a source is deleted: they stay, or its entries are removed')
      .optional(),
    removeAfter: z
      .string()
      .max(32)
      .regex(/^(0|(\d+(ms|s|m|h))+)$/)
      .describe(`How long after the deletion, such as 30m; by default ${DEFAULT_REMOVE_AFTER}`)
      .optional(),
  })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: "!has(self.removeAfter) || (has(self.onSourceDeleted) && self.onSourceDeleted == 'Remove')",
        message: 'removeAfter has no meaning without onSourceDeleted: Remove',
      },
    ],
  });

const spec = z
  .strictObject({
    order: z
      .int()
      .min(-1_000_000)
      .max(1_000_000)
      .meta({ format: 'int32', default: 0 })
      .describe('Lower ones are appended to a pod first; equal ones go by name')
      .optional(),
    namespaceSelector: labelSelectorSchema().describe('Namespaces that are served; {} selects all'),
    selector: labelSelectorSchema()
      .describe('Pods that get the names; {} selects all. Left out only with mode Distribute')
      .optional(),
    mode: z
      .enum(PROFILE_MODES)
      .meta({ default: 'InjectAndDistribute' })
      .describe('Whether pods get the names, namespaces get the Secrets, or both')
      .optional(),
    secrets: z
      .array(secret)
      .min(1)
      .max(MAX_SECRETS)
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
      .describe('In the order in which they are appended to a pod'),
    copies: copies
      .describe('What copies carry besides the credential, and what becomes of them when a source is deleted')
      .optional(),
    suspend: z.boolean().describe('Stops everything but revocation; copies stay as they are').optional(),
    successor: z
      .string()
      .min(1)
      .max(253)
      .describe('Name of the profile that takes over the Secret names which this one holds')
      .optional(),
  })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: `self.secrets.map(s, has(s.sources) ? size(s.sources) : 0).sum() <= ${MAX_SOURCES_IN_ALL}`,
        message: `at most ${MAX_SOURCES_IN_ALL} sources in all; split the profile`,
      },
      {
        rule: "!has(self.mode) || self.mode != 'Distribute' || self.secrets.all(s, has(s.sources) && size(s.sources) > 0)",
        message: 'mode Distribute needs sources for every secret',
      },
      {
        rule: "has(self.selector) || (has(self.mode) && self.mode == 'Distribute')",
        message: 'spec.selector is required: {} selects all pods of these namespaces',
      },
    ],
  });

const count = z.int().min(0).max(2_147_483_647).meta({ format: 'int32' });

const status = z
  .strictObject({
    observedGeneration: observedGenerationSchema(-1),
    namespaces: z
      .strictObject({
        selected: count.describe('Namespaces that the profile selects'),
        current: count.describe('Of these, the ones that hold every Secret as it should be'),
        blocked: count.describe('Of these, the ones whose own owners have to act').optional(),
      })
      .describe('How many namespaces are served')
      .optional(),
    copies: z.string().max(32).describe('current/selected').optional(),
    heldRemoval: z
      .string()
      .max(64)
      .describe('Value of the annotation pullwright.dev/confirm-removal that lets a removal go on')
      .optional(),
    missingSources: z
      .array(
        z.strictObject({
          source: z.string().max(320).describe('namespace/name of a source that was deleted'),
          since: z.string().max(32).describe('When that was seen'),
        }),
      )
      .max(MAX_SOURCES_IN_ALL)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe('Sources that were there and are deleted')
      .optional(),
    conditions: conditionsSchema().optional(),
  })
  // A new object is in progress until somebody has looked at it.
  .meta({ default: { observedGeneration: -1 } })
  .optional();

/** The CustomResourceDefinition of `PullSecretProfile`. */
export function pullSecretProfileCrd(): KubeObject {
  const [group = '', version = ''] = PROFILE_API_VERSION.split('/');
  return crd({
    group,
    kind: PROFILE_KIND,
    shortNames: ['pprof'],
    categories: [CATEGORY],
    scope: 'Cluster',
    labels: labels({ name: 'pullsecretprofile', component: 'crd' }),
    versions: [
      {
        name: version,
        schema: z.strictObject({ spec, status }).meta({
          description:
            'Says which pods get which pull secrets, and where the secrets come from. Only imagePullSecrets are injected, never containers.',
        }),
        printerColumns: [
          { name: 'Mode', type: 'string', jsonPath: '.spec.mode' },
          { name: 'Copies', type: 'string', jsonPath: '.status.copies' },
          { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
          { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
          {
            name: 'Message',
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
