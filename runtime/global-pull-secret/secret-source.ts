/**
 * Source of a pull secret. Git never contains a credential, only a reference that an in-cluster operator or the GitOps tool
 * resolves to the Secret.
 */
import { z } from 'zod';
import { customObject } from '../core/kubernetes/custom-kinds.ts';
import { dnsName, durationField } from '../core/kubernetes/fields.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../core/kubernetes/hypershift.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { labels } from '../core/kubernetes/objects.ts';

/** The Secret that the source resolves to. */
export interface SecretReference {
  readonly namespace: string;
  readonly name: string;
}

/** Renders the object for the source; empty for SOPS, where the user maintains the file. */
export function secretSourceObjects(target: SecretReference, source: SecretSource): readonly KubeObject[] {
  if (source.externalSecret !== undefined) return [externalSecret(target, source.externalSecret)];
  if (source.sealedSecret !== undefined) return [sealedSecret(target, source.sealedSecret)];
  return [];
}

/**
 * Paths of the files that the user maintains for a source, relative to the cluster's folder:
 * `overlays/sops/kube-system/secret-additional-pull-secret.sops.yaml`.
 */
export function sourceFiles(target: SecretReference, source: SecretSource): readonly string[] {
  return source.sops === undefined
    ? []
    : [`overlays/sops/${target.namespace}/secret-${target.name}.sops.yaml`];
}

function externalSecret(
  target: SecretReference,
  {
    store,
    storeKind = 'ClusterSecretStore',
    refreshInterval = '1h',
    ...remoteRef
  }: NonNullable<SecretSource['externalSecret']>,
): KubeObject {
  return customObject('ExternalSecret', metadata(target), {
    refreshInterval,
    secretStoreRef: { kind: storeKind, name: store },
    // Retain: a failed or accidentally emptied store must not remove the credentials of running nodes.
    target: {
      name: target.name,
      creationPolicy: 'Owner',
      deletionPolicy: 'Retain',
      template: { type: NAMES.secretType },
    },
    data: [{ secretKey: NAMES.dataKey, remoteRef }],
  });
}

function sealedSecret(target: SecretReference, source: NonNullable<SecretSource['sealedSecret']>) {
  const scope = source.scope ?? 'strict';
  const annotations =
    scope === 'strict' ? {} : { annotations: { [`sealedsecrets.bitnami.com/${scope}`]: 'true' } };
  return customObject(
    'SealedSecret',
    { ...metadata(target), ...annotations },
    {
      encryptedData: { [NAMES.dataKey]: source.encrypted },
      template: { type: NAMES.secretType, metadata: { ...target, ...annotations } },
    },
  );
}

function metadata(target: SecretReference): SecretReference & { labels: Readonly<Record<string, string>> } {
  return { ...target, labels: labels({ name: 'pull-secret', component: 'source' }) };
}

/** Ciphertext is long and starts with the length of its session key. A docker config in base64 decodes to JSON. */
function isEncrypted(text: string): boolean {
  const bytes = Buffer.from(text, 'base64');
  return bytes.length > 300 && !/[{}]/.test(bytes.toString('latin1', 0, 2));
}

/** Exactly one of the three sources. */
export const secretSourceSchema = z
  .strictObject({
    externalSecret: z
      .strictObject({
        store: dnsName.describe('Name of the SecretStore or ClusterSecretStore'),
        storeKind: z
          .enum(['ClusterSecretStore', 'SecretStore'])
          .exactOptional()
          .describe('Default: ClusterSecretStore'),
        key: z.string().min(1).max(1024).describe('Key in the store; its value is a docker config as JSON'),
        property: z.string().min(1).max(1024).exactOptional().describe('Field of the value'),
        version: z.string().min(1).max(253).exactOptional().describe('Version in the store'),
        refreshInterval: durationField.exactOptional().describe('Default: 1h'),
      })
      .exactOptional()
      .describe('From a secret store, synced by the External Secrets Operator'),
    sealedSecret: z
      .strictObject({
        encrypted: z
          .base64('expected the output of "kubeseal --raw"')
          .refine(isEncrypted, 'not a sealed value: expected the output of "kubeseal --raw"')
          .describe('Output of "kubeseal --raw" for the key .dockerconfigjson'),
        scope: z
          .enum(['strict', 'namespace-wide', 'cluster-wide'])
          .exactOptional()
          .describe('Default: strict'),
      })
      .exactOptional()
      .describe('Encrypted for one cluster by kubeseal'),
    sops: z.strictObject({}).exactOptional().describe('A file that you encrypt with SOPS, at overlays/sops'),
  })
  .refine((source) => Object.keys(source).length === 1, {
    error: 'expected exactly one of externalSecret, sealedSecret, sops',
  });

export type SecretSource = z.infer<typeof secretSourceSchema>;
