/**
 * The kinds of other operators as we write them, checked by the compiler: OpenShift's as their CRDs have them, with Ignition's
 * own fields where a CRD takes anything, and those of the Prometheus Operator. Only the fields that somebody here writes: a
 * field that is missing does not compile until it is added from the CRD.
 *
 * Source of the rule: the CRDs of OpenShift 4.21 and of the Prometheus Operator 0.86; Ignition's specification 3.5.
 */
import type { KubeObject, ObjectMeta } from './object.ts';

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
 */
export function customObject<K extends CustomKind>(
  kind: K,
  metadata: ObjectMeta,
  fields: Kinds[K],
): KubeObject {
  return { apiVersion: API_VERSION[kind], kind, metadata, ...fields };
}

// OpenShift's kinds as we write them: MachineConfig with Ignition's own fields, the three mirror sets, and what the catalogs of
// the Operator Lifecycle Manager are.
// Source of the rule: the CRDs of OpenShift 4.21; Ignition's specification 3.5; types `ImageStream` and `CatalogSource` of the
// OpenShift and OLM APIs.

/** One source and its mirrors, as every kind of mirror set has it. */
interface Mirrors {
  readonly source: string;
  readonly mirrors: readonly string[];
}

interface PolicedMirrors extends Mirrors {
  readonly mirrorSourcePolicy?: 'AllowContactingSource' | 'NeverContactSource';
}

/** A file of Ignition. `contents.source` is a data URL. */
export interface IgnitionFile {
  readonly path: string;
  /** Permission bits, as a number. */
  readonly mode: number;
  readonly overwrite: boolean;
  readonly contents: {
    readonly source: string;
    readonly compression?: '' | 'gzip';
    readonly verification?: { readonly hash?: string };
  };
  readonly user?: { readonly name?: string };
  readonly group?: { readonly name?: string };
}

/** A unit of systemd. */
interface IgnitionUnit {
  readonly name: string;
  readonly enabled: boolean;
  readonly contents: string;
}

/** What a MachineConfig brings to the nodes of its pool. The operator writes empty objects out, and compares with them. */
export interface IgnitionConfig {
  readonly ignition: {
    readonly version: `3.${number}.${number}`;
    readonly config?: { readonly replace: { readonly verification: Readonly<Record<string, never>> } };
    readonly proxy?: Readonly<Record<string, never>>;
    readonly security?: { readonly tls: Readonly<Record<string, never>> };
    readonly timeouts?: Readonly<Record<string, never>>;
  };
  readonly kernelArguments?: Readonly<Record<string, never>>;
  readonly passwd?: Readonly<Record<string, never>>;
  readonly storage?: { readonly files?: readonly IgnitionFile[] };
  readonly systemd?: { readonly units?: readonly IgnitionUnit[] };
}

interface CatalogSourceSpec {
  readonly sourceType: 'grpc';
  readonly displayName: string;
  readonly publisher: string;
  readonly priority: number;
  readonly grpcPodConfig: { readonly securityContextConfig: 'restricted' | 'legacy' };
  readonly updateStrategy: { readonly registryPoll: { readonly interval: string } };
  /** `host:port` of what runs already. */
  readonly address?: string;
  /** What is to be run. */
  readonly image?: string;
}

interface ImageStreamTag {
  readonly name: string;
  readonly from: { readonly kind: 'DockerImage'; readonly name: string };
  readonly importPolicy: { readonly scheduled: boolean; readonly importMode: 'Legacy' | 'PreserveOriginal' };
  readonly referencePolicy: { readonly type: 'Local' | 'Source' };
}

/** What each kind has beside apiVersion, kind and metadata. */
export interface OpenShiftKinds {
  readonly CatalogSource: { readonly spec: CatalogSourceSpec };
  readonly ImageContentSourcePolicy: {
    readonly spec: { readonly repositoryDigestMirrors: readonly Mirrors[] };
  };
  readonly ImageDigestMirrorSet: {
    readonly spec: { readonly imageDigestMirrors: readonly PolicedMirrors[] };
  };
  readonly ImageStream: {
    readonly spec: {
      readonly lookupPolicy: { readonly local: boolean };
      readonly tags: readonly ImageStreamTag[];
    };
  };
  readonly ImageTagMirrorSet: { readonly spec: { readonly imageTagMirrors: readonly PolicedMirrors[] } };
  readonly MachineConfig: { readonly spec: { readonly config: IgnitionConfig } };
}
