/** Objects of Kubernetes for tests. */

/** Type and metadata of an object, for the start of its literal; `type` is of the form `v1 Pod` or `apps/v1 Deployment`. */
export function meta<Type extends string, Metadata extends object>(
  type: Type,
  metadata: Metadata,
): {
  readonly apiVersion: string;
  readonly kind: Type extends `${string} ${infer Kind}` ? Kind : string;
  readonly metadata: Metadata;
} {
  const [apiVersion = '', kind] = type.split(' ');
  return { apiVersion, kind: kind as ReturnType<typeof meta<Type, Metadata>>['kind'], metadata };
}

/** A pull secret with this text in it, or this document. */
export function pullSecretObject<Metadata extends object>(metadata: Metadata, config: string | object) {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  return {
    ...meta('v1 Secret', metadata),
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(text).toString('base64') },
  };
}

/** By which a store knows an object. */
export function refOf(
  type: string,
  name: string,
  namespace?: string,
): {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
} {
  const [apiVersion = '', kind = ''] = type.split(' ');
  return { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) };
}
