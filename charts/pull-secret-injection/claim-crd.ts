/** The kind `PullSecretClaim`: schema and columns of `kubectl get`. */
import { z } from 'zod';
import {
  CLAIM_API_VERSION,
  CLAIM_KIND,
  PROFILE_NAME,
} from '../../runtime/rules/injection/pull-secret-claim.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { CATEGORY, conditionsSchema, crd, observedGenerationSchema } from '../shared/crd.ts';
import { labels } from '../shared/metadata.ts';

const spec = z.strictObject({
  profile: z
    .string()
    .min(1)
    .max(253)
    .regex(PROFILE_NAME)
    .describe('Name of a PullSecretProfile with offer: OnRequest'),
});

const status = z
  .strictObject({
    observedGeneration: observedGenerationSchema(-1),
    secrets: z
      .array(z.string().max(253))
      .max(16)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe('Names of the Secrets that are brought to this namespace')
      .optional(),
    conditions: conditionsSchema().optional(),
  })
  .meta({ default: { observedGeneration: -1 } })
  .optional();

/** The CustomResourceDefinition of `PullSecretClaim`. */
export function pullSecretClaimCrd(): KubeObject {
  const [group = '', version = ''] = CLAIM_API_VERSION.split('/');
  const condition = (field: string): string => `.status.conditions[?(@.type=="Ready")].${field}`;
  return crd({
    group,
    kind: CLAIM_KIND,
    shortNames: ['pclaim'],
    categories: [CATEGORY],
    scope: 'Namespaced',
    labels: labels({ name: 'pullsecretclaim', component: 'crd' }),
    versions: [
      {
        name: version,
        schema: z.strictObject({ spec, status }).meta({
          description:
            'Asks for what a profile offers on request, for the namespace of the claim. The owner of the source approves by a PullSecretGrant; deleting the claim takes the copies away.',
        }),
        printerColumns: [
          { name: 'Profile', type: 'string', jsonPath: '.spec.profile' },
          { name: 'Ready', type: 'string', jsonPath: condition('status') },
          { name: 'Reason', type: 'string', jsonPath: condition('reason') },
          { name: 'Message', type: 'string', jsonPath: condition('message'), priority: 1 },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
      },
    ],
  });
}
