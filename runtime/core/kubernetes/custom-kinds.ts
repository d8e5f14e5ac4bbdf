/** The kinds of other operators that charts and reconcilers write. */
import type { KubeObject, ObjectMeta } from './object.ts';

type CustomKind =
  | 'CatalogSource'
  | 'ImageContentSourcePolicy'
  | 'ImageDigestMirrorSet'
  | 'ImageStream'
  | 'ImageTagMirrorSet'
  | 'MachineConfig'
  | 'PodMonitor'
  | 'PrometheusRule'
  | 'ServiceMonitor';

const MONITORING = 'monitoring.coreos.com/v1';

const API_VERSION: Readonly<Record<CustomKind, string>> = {
  CatalogSource: 'operators.coreos.com/v1alpha1',
  ImageContentSourcePolicy: 'operator.openshift.io/v1alpha1',
  ImageDigestMirrorSet: 'config.openshift.io/v1',
  ImageStream: 'image.openshift.io/v1',
  ImageTagMirrorSet: 'config.openshift.io/v1',
  MachineConfig: 'machineconfiguration.openshift.io/v1',
  PodMonitor: MONITORING,
  PrometheusRule: MONITORING,
  ServiceMonitor: MONITORING,
};

/**
 * An object of another operator's kind.
 *
 * @param kind e.g. `MachineConfig`; the API version follows from it.
 * @param metadata at least the name.
 * @param spec as the kind's CRD has it.
 */
export function customObject(
  kind: CustomKind,
  metadata: ObjectMeta,
  spec: Readonly<Record<string, unknown>>,
): KubeObject {
  return { apiVersion: API_VERSION[kind], kind, metadata, spec };
}
