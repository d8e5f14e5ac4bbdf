/** Where the installer of a node says what became of the provider there. */

/** Reason of the Events on pods, and of verdicts in the PullStatus of the node. */
export const PROVIDER_FAILED = 'CredentialProviderFailed';

/** Name of the installer's PullStatus of a node; that of the node agent is another. */
export function installerStatusName(node: string): string {
  return `credential-provider-node-${node}`.slice(0, 253);
}
