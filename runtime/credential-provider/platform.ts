/**
 * Defaults of each OpenShift platform: the kubelet's file of credential providers, and its content by the Machine Config
 * Operator.
 *
 * Source: openshift/machine-config-operator, templates/common and the kubelet flag function; recorded in
 * test/conformance/cases/mco.
 */
import {
  CONFIG_API_VERSION,
  CONFIG_KIND,
  type CredentialProviderConfig,
  PLUGIN_API_VERSION,
  type ProviderEntry,
} from './config.ts';

export const CREDENTIAL_PROVIDER = {
  /** Name of the singleton. */
  objectName: 'cluster',
  group: 'config.openshift.io',
  kind: 'CRIOCredentialProviderConfig',
  plural: 'criocredentialproviderconfigs',
  /** Name of the provider in the kubelet's configuration, and of the executable. */
  name: 'crio-credential-provider',
  /** File with options beside the executable, where arguments cannot be passed. */
  configName: 'crio-credential-provider.json',
  binDir: '/usr/libexec/kubelet-image-credential-provider-plugins',
  configDir: '/etc/kubernetes/credential-providers',
  dropIn: '/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf',
  dropInVariable: 'KUBELET_CRIO_IMAGE_CREDENTIAL_PROVIDER_FLAGS',
  audience: 'https://kubernetes.default.svc',
  /** Minor version of the oldest kubelet and CRI-O that accept such a file. */
  minimumMinor: 34,
} as const;

/** The kind in each served version, in order of preference: OpenShift's technology preview serves v1alpha1 only. */
export const CONFIG_KINDS = ['v1', 'v1alpha1'].map((version) => ({
  apiVersion: `${CREDENTIAL_PROVIDER.group}/${version}`,
  kind: CREDENTIAL_PROVIDER.kind,
}));

/** The singleton in each version. */
export const CONFIGS = CONFIG_KINDS.map((kind) => ({ ...kind, name: CREDENTIAL_PROVIDER.objectName }));

export type PlatformFile = Readonly<ReturnType<typeof platformFile>>;

const CLOUDS: Readonly<Record<string, ProviderEntry>> = {
  AWS: {
    name: 'ecr-credential-provider',
    matchImages: [
      '*.dkr.ecr.*.amazonaws.com',
      '*.dkr.ecr.*.amazonaws.com.cn',
      '*.dkr.ecr-fips.*.amazonaws.com',
      '*.dkr.ecr.us-iso-east-1.c2s.ic.gov',
      '*.dkr.ecr.us-isob-east-1.sc2s.sgov.gov',
    ],
    defaultCacheDuration: '12h',
  },
  GCP: {
    name: 'gcr-credential-provider',
    matchImages: ['gcr.io', '*.gcr.io', '*.pkg.dev', 'container.cloud.google.com'],
    defaultCacheDuration: '1m',
    args: ['get-credentials', '--v=3'],
  },
  Azure: {
    name: 'acr-credential-provider',
    matchImages: ['*.azurecr.io', '*.azurecr.cn', '*.azurecr.de', '*.azurecr.us'],
    defaultCacheDuration: '10m',
    args: ['/etc/kubernetes/cloud.conf'],
  },
};

/** The file of a platform type of `Infrastructure/cluster`. */
export function platformFile(platform: string) {
  const cloud = Object.hasOwn(CLOUDS, platform) ? CLOUDS[platform] : undefined;
  const name = cloud?.name ?? 'generic-credential-provider';
  return {
    /** Absolute path on the node. */
    path: `${CREDENTIAL_PROVIDER.configDir}/${name}.yaml`,
    /** Whether the platform's kubelet flags name the file. */
    isKnownToKubelet: cloud !== undefined,
    /** Content by the platform; absent where the platform has no file. */
    template: cloud === undefined ? undefined : templateOf(cloud),
  };
}

function templateOf(provider: ProviderEntry): CredentialProviderConfig {
  return {
    apiVersion: CONFIG_API_VERSION,
    kind: CONFIG_KIND,
    providers: [{ ...provider, apiVersion: PLUGIN_API_VERSION }],
  };
}

/** The flags that point a kubelet at a file. */
export function kubeletFlags(path: string, binDir: string = CREDENTIAL_PROVIDER.binDir): string {
  return `--image-credential-provider-bin-dir=${binDir} --image-credential-provider-config=${path}`;
}

// Names in reports of a node's installer.

/** Reason of the Events on pods, and of verdicts in the PullStatus of the node. */
export const PROVIDER_FAILED = 'CredentialProviderFailed';

/** Name of the installer's PullStatus of a node, which differs from the node agent's. */
export function installerStatusName(node: string): string {
  return `credential-provider-node-${node}`.slice(0, 253);
}
