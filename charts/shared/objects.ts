/**
 * Plain, typed objects of the kinds that we render. Nothing of cdk8s: `charts/<system>/objects.ts` is built from these, and
 * imported both by the construct that writes YAML and by the reconciler that applies the same objects at run time.
 */
export * from './account-bounds.ts';
export * from './custom-kinds.ts';
export * from './image-pull-secrets.ts';
export * from './kubernetes.ts';
export * from './metadata.ts';
export * from './network.ts';
export * from './policies.ts';
export * from './rbac.ts';
export * from './workloads.ts';
