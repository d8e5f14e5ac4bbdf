/** One place where two objects differ. `before` or `after` is undefined where it is absent; secrets stay wrapped. */
export interface Difference {
  /** `spec.containers[agent].image`, `metadata.labels["a/b"]`. */
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}
