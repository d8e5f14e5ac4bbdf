/**
 * Which pods and namespaces get which pull secrets: SidecarSets and PullSecretProfiles.
 *
 * - `image-pull-secrets.ts`: Merging `imagePullSecrets` into a pod
 * - `own-kind.ts`: What the readers of our kinds have in common
 * - `profile-causes.ts`: Why a profile is not as it should be, by cause
 * - `profile-copies.ts`: `spec.copies` of a profile
 * - `profile-grant.ts`: The consent of a source Secret
 * - `profile-plan.ts`: The injection plan
 * - `profile-policy.ts`: Compiles an injection plan to one MutatingAdmissionPolicy (Kubernetes >= 1.36; 1.34
 *   and 1.35 with the feature gate)
 * - `profile-webhook.ts`: The webhook's part of the plan
 * - `profile.ts`: `PullSecretProfile` (pullwright.dev/v1alpha1, cluster-scoped)
 * - `pull-secret-claim.ts`: `PullSecretClaim` (pullwright.dev/v1alpha1, namespaced)
 * - `pull-secret-grant.ts`: `PullSecretGrant` (pullwright.dev/v1alpha1, namespaced)
 * - `removal-breaker.ts`: Holds a change that would take many copies of a profile away at once
 * - `service-account-pull-secrets.ts`: What a service account has to do with the pull secrets of its pods
 * - `sidecar-set-injection.ts`: Which content of a SidecarSet counts where the decision is made once for all pods
 * - `sidecar-set.ts`: OpenKruise SidecarSets (apps.kruise.io v1alpha1 and v1beta1), as far as
 *   `imagePullSecrets` go
 *
 * @module
 */
export {};
