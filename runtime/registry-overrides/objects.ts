/**
 * Plain objects of the catalogs of the Operator Lifecycle Manager, shared by the charts and the reconciler.
 *
 * Source of the rule: HyperShift's assets for the catalogs, field by field.
 */

import { customObject } from '../core/kubernetes/custom-kinds.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import type { Catalog } from './olm-catalogs.ts';

/** Images by catalog name. */
export type CatalogImages = Readonly<Record<string, string>>;

export const CATALOG_STREAM = 'catalogs';
export const TRIGGERS_ANNOTATION = 'image.openshift.io/triggers';
/** Containers of a catalog Deployment that run the catalog's image. */
export const CATALOG_CONTAINERS = { initContainer: 'extract-content', container: 'registry' } as const;

/** ImageStream `catalogs` of a control plane namespace: one scheduled tag per catalog, by name. */
export function catalogImageStream(namespace: string, images: CatalogImages): KubeObject {
  const tags = Object.entries(images)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, image]) => ({
      name,
      from: { kind: 'DockerImage', name: image },
      importPolicy: { scheduled: true, importMode: 'PreserveOriginal' },
      referencePolicy: { type: 'Local' },
    }));
  const metadata = { name: CATALOG_STREAM, namespace };
  return customObject('ImageStream', metadata, { lookupPolicy: { local: true }, tags });
}

export interface ImageTrigger {
  readonly from: { readonly kind: 'ImageStreamTag'; readonly name: string };
  readonly fieldPath: string;
}

/** What keeps a catalog Deployment's containers at the ImageStream's tag. */
export function catalogTriggers(catalog: string): readonly ImageTrigger[] {
  const from = { kind: 'ImageStreamTag', name: `${CATALOG_STREAM}:${catalog}` } as const;
  const { initContainer, container } = CATALOG_CONTAINERS;
  return [
    { from, fieldPath: `spec.template.spec.initContainers[?(@.name=="${initContainer}")].image` },
    { from, fieldPath: `spec.template.spec.containers[?(@.name=="${container}")].image` },
  ];
}

/** CatalogSource in the hosted cluster, with the image to run there. */
export function catalogSource(catalog: Catalog, image: string): KubeObject {
  const metadata = {
    name: catalog.name,
    namespace: 'openshift-marketplace',
    annotations: { 'target.workload.openshift.io/management': '{"effect": "PreferredDuringScheduling"}' },
  };
  return customObject('CatalogSource', metadata, {
    sourceType: 'grpc',
    displayName: catalog.displayName,
    publisher: 'Red Hat',
    priority: catalog.priority,
    grpcPodConfig: { securityContextConfig: 'restricted' },
    updateStrategy: { registryPoll: { interval: '10m' } },
    image,
  });
}
