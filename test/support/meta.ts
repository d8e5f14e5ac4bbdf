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
