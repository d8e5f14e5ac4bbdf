/**
 * Objects of other tools (kubernetes-replicator, reflector, imagepullsecret-patcher, Kruise, HyperShift) as ours.
 *
 * - `copies.ts`: Copies of a Secret in other namespaces, as a profile and a grant
 * - `hypershift.ts`: HyperShift
 * - `import.ts`: What other tools do with pull secrets, as a fleet of ours
 * - `imps.ts`: banzaicloud/imps
 * - `kruise.ts`: Kruise
 * - `namespaces.ts`: Which namespaces a list of patterns means, as a selector of namespaces and as a grant
 * - `others.ts`: Kyverno policies, ClusterExternalSecret, registry-creds (ClusterPullSecret) and imagepullsecret-patcher
 * - `reflector.ts`: emberstack/kubernetes-reflector
 * - `replicator.ts`: mittwald/kubernetes-replicator
 * - `types.ts`: What an import is made of
 *
 * @module
 */
export {};
