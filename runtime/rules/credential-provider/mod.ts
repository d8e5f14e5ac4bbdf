/**
 * The configuration of kubelet credential providers, and the auth files that the plugin writes.
 *
 * - `auth-file-entry.ts`: One entry of an auth file
 * - `config-check.ts`: Whether the kubelet starts with a `CredentialProviderConfig`
 * - `config.ts`: `CredentialProviderConfig` of the kubelet, decoded as strictly as the kubelet does it
 * - `glob-algebra.ts`: Whether two `matchImages` patterns of the kubelet can match the same image
 * - `kubeconfig.ts`: What a kubeconfig says about the API server
 * - `kubelet-unit.ts`: Where the unit of a kubelet takes more flags without its command being repeated
 * - `merge.ts`: `CRIOCredentialProviderConfig` into the kubelet's file
 * - `name.ts`: The name of a `CRIOCredentialProviderConfig`
 * - `namespace-auth-file.ts`: The auth file that the container runtime uses for one pull instead of the node's
 *   own
 * - `namespace-credentials.ts`: Which credential of a namespace goes to which pull source
 * - `platform-offer.ts`: What a pull secret of the platform gives for an image
 * - `platform.ts`: What each platform of an OpenShift cluster already has
 * - `provider-flags.ts`: The options of the credential provider's executable
 * - `report-names.ts`: Where the installer of a node says what became of the provider there
 *
 * @module
 */
export {};
