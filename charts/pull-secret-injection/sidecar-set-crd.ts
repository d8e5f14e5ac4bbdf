/**
 * The kind `SidecarSet` for clusters that do not run Kruise: the fields that pull secret injection reads are typed, the
 * rest is kept as it is. Where Kruise is installed, its own definition stays.
 */
import { z } from 'zod';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { conditionsSchema, crd, observedGenerationSchema } from '../shared/crd.ts';
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
    .array(
      z.strictObject({
        name: z.string().max(253).describe('Name of a Secret in the namespace of the pod').optional(),
      }),
    )
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
      paused: z.boolean().describe('Nothing is injected while it is true').optional(),
      revision: z
        .looseObject({
          revisionName: z.string().max(253).describe('Name of a ControllerRevision').optional(),
          customVersion: z
            .string()
            .max(63)
            .describe('Value of the label apps.kruise.io/sidecarset-custom-version of a ControllerRevision')
            .optional(),
          policy: z
            .enum(['Always', 'Partial'])
            .describe('Whether all pods get that revision, or those beside the updated ones')
            .optional(),
        })
        .describe('An older revision, whose names are injected instead')
        .optional(),
    })
    .describe('Whether and from which revision new pods are injected')
    .optional(),
});

const status = z
  .looseObject({
    observedGeneration: observedGenerationSchema(),
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
