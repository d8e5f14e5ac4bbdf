/**
 * The kinds of other operators as we write them, checked by the compiler: OpenShift's as their CRDs have them, with Ignition's
 * own fields where a CRD takes anything, and those of the Prometheus Operator. Only the fields that somebody here writes: a
 * field that is missing does not compile until it is added from the CRD.
 *
 * Source of the rule: the CRDs of OpenShift 4.21 and of the Prometheus Operator 0.86; Ignition's specification 3.5.
 */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';
import type { OpenShiftKinds } from './openshift.ts';

/** An endpoint that is scraped. */
interface Endpoint {
  /** Name of the port. */
  readonly port: string;
  /** `30s`. */
  readonly interval: string;
  readonly scheme?: 'http' | 'https';
  readonly tlsConfig?: {
    readonly serverName: string;
    readonly ca: { readonly secret: { readonly name: string; readonly key: string } };
  };
}

interface LabelSelector {
  readonly matchLabels: Readonly<Record<string, string>>;
}

interface AlertingRule {
  readonly alert: string;
  /** PromQL. */
  readonly expr: string;
  readonly for: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** What each kind has beside apiVersion, kind and metadata. */
interface Kinds extends OpenShiftKinds {
  readonly PodMonitor: {
    readonly spec: { readonly selector: LabelSelector; readonly podMetricsEndpoints: readonly Endpoint[] };
  };
  readonly PrometheusRule: {
    readonly spec: {
      readonly groups: readonly { readonly name: string; readonly rules: readonly AlertingRule[] }[];
    };
  };
  readonly ServiceMonitor: {
    readonly spec: { readonly selector: LabelSelector; readonly endpoints: readonly Endpoint[] };
  };
}

/** A kind of another operator that charts and reconcilers write. */
export type CustomKind = keyof Kinds;

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
 * An object of another operator's kind. A field that the kind does not have, or a value of another type, does not compile.
 *
 * @param kind e.g. `MachineConfig`; the API version follows from it.
 * @param metadata at least the name.
 * @param fields `spec`, and whatever else the kind has.
 *
 * @example
 * ```ts
 * import { customObject } from './custom-kinds.ts';
 * import assert from 'node:assert/strict';
 *
 * const mirrors = { source: 'quay.io/team', mirrors: ['mirror.example.com/team'] };
 * const object = customObject('ImageDigestMirrorSet', { name: 'team' }, { spec: { imageDigestMirrors: [mirrors] } });
 * assert.equal(object.apiVersion, 'config.openshift.io/v1');
 * // @ts-expect-error the list of a digest mirror set has another name
 * customObject('ImageDigestMirrorSet', { name: 'team' }, { spec: { imageTagMirrors: [mirrors] } });
 * ```
 */
export function customObject<K extends CustomKind>(
  kind: K,
  metadata: ObjectMeta,
  fields: Kinds[K],
): KubeObject {
  return { apiVersion: API_VERSION[kind], kind, metadata, ...fields };
}
