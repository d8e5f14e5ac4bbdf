/**
 * The kind `SidecarSet` for clusters that do not run Kruise: the fields that pull secret injection reads are typed, the
 * rest is kept as it is. Where Kruise is installed, its own definition stays.
 */
import { z } from 'zod';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { conditionsSchema, crd } from '../shared/crd.ts';
import { labels } from '../shared/metadata.ts';
import { labelSelectorSchema } from './label-selector-schema.ts';

const kept = (): z.ZodType => z.looseObject({});

const spec = z.looseObject({
  selector: labelSelectorSchema().describe('Pods that get the names; empty selects none').optional(),
  namespace: z
    .string()
    .max(63)
    .describe('Only pods of this namespace; wins over namespaceSelector')
    .optional(),
  namespaceSelector: labelSelectorSchema().describe('Only pods of these namespaces').optional(),
  imagePullSecrets: z
    .array(z.strictObject({ name: z.string().max(253).optional() }))
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('Names that are merged into imagePullSecrets of matching pods')
    .optional(),
  containers: z
    .array(kept())
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('Not injected. Without any container in the matching sets nothing is injected, as in Kruise')
    .optional(),
  initContainers: z
    .array(kept())
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('Not injected')
    .optional(),
  injectionStrategy: z
    .looseObject({
      paused: z.boolean().optional(),
      revision: z
        .looseObject({
          revisionName: z.string().max(253).optional(),
          customVersion: z.string().max(63).optional(),
          policy: z.enum(['Always', 'Partial']).optional(),
        })
        .optional(),
    })
    .optional(),
});

const status = z
  .looseObject({
    observedGeneration: z.int().meta({ format: 'int64' }).optional(),
    conditions: conditionsSchema().optional(),
  })
  .optional();

/** The CustomResourceDefinition of `SidecarSet`, v1beta1 (stored) and v1alpha1. */
export function sidecarSetCrd(): KubeObject {
  const schema = z.strictObject({ spec, status }).meta({
    description:
      'An OpenKruise SidecarSet as Pullwright reads it: only imagePullSecrets are injected, never containers. Install Kruise to inject containers.',
  });
  const printerColumns = [
    { name: 'Injecting', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ] as const;
  return crd({
    group: 'apps.kruise.io',
    kind: 'SidecarSet',
    scope: 'Cluster',
    labels: labels({ name: 'sidecarset', component: 'crd' }),
    versions: [
      { name: 'v1beta1', schema, printerColumns },
      { name: 'v1alpha1', schema, printerColumns, storage: false },
    ],
  });
}
