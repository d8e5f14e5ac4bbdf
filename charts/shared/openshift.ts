/**
 * OpenShift's kinds as we write them: MachineConfig with Ignition's own fields, the three mirror sets, and what the catalogs of
 * the Operator Lifecycle Manager are.
 *
 * Source of the rule: the CRDs of OpenShift 4.21; Ignition's specification 3.5; types `ImageStream` and `CatalogSource` of the
 * OpenShift and OLM APIs.
 */

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
