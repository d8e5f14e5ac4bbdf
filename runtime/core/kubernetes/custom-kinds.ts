/** Kinds of other operators that charts and reconcilers write. */
import type { KubeObject, ObjectMeta } from './object.ts';

const MONITORING = 'monitoring.coreos.com/v1';

const API_VERSION = {
  Application: 'argoproj.io/v1alpha1',
  CatalogSource: 'operators.coreos.com/v1alpha1',
  Certificate: 'cert-manager.io/v1',
  ExternalSecret: 'external-secrets.io/v1',
  GitRepository: 'source.toolkit.fluxcd.io/v1',
  ImageContentSourcePolicy: 'operator.openshift.io/v1alpha1',
  ImageDigestMirrorSet: 'config.openshift.io/v1',
  ImageStream: 'image.openshift.io/v1',
  ImageTagMirrorSet: 'config.openshift.io/v1',
  Kustomization: 'kustomize.toolkit.fluxcd.io/v1',
  MachineConfig: 'machineconfiguration.openshift.io/v1',
  PodMonitor: MONITORING,
  PrometheusRule: MONITORING,
  SealedSecret: 'bitnami.com/v1alpha1',
  ServiceMonitor: MONITORING,
} as const;

/**
 * An object of another operator's kind.
 *
 * @param kind e.g. `MachineConfig`; the API version follows from it.
 * @param metadata at least the name.
 * @param spec as defined by the kind's CRD.
 */
export function customObject(
  kind: keyof typeof API_VERSION,
  metadata: ObjectMeta,
  spec: Readonly<Record<string, unknown>>,
): KubeObject {
  return { apiVersion: API_VERSION[kind], kind, metadata, spec };
}
