/** The flags of `reconcile`, read. */

/** Flags of `reconcile`, offline and live. */
export interface ReconcileFlags {
  readonly from?: string;
  readonly management?: string;
  readonly to?: string;
  readonly 'hosted-cluster'?: string;
  readonly config?: string;
  readonly facts?: string;
  readonly output: string;
  readonly verbose: boolean;
  readonly 'dry-run': boolean;
  readonly 'with-secrets': boolean;
  readonly 'digest-key-file'?: string;
  readonly kubeconfig?: string;
  readonly 'management-kubeconfig'?: string;
  readonly discover: boolean;
  readonly 'kubeconfig-secret'?: string;
  readonly 'refresh-seconds'?: string;
  readonly 'registry-authfile'?: string;
  readonly 'lease-namespace'?: string;
  readonly 'lease-seconds'?: string;
  readonly 'health-port'?: string;
  readonly 'metrics-port'?: string;
  readonly 'log-format'?: string;
  readonly 'log-level'?: string;
}
