/** Tells people of a hosted cluster that is not looked after: an Event on the HostedControlPlane, and a metric where it leads to somebody else's. */
import type { PullwrightError } from '../rules/errors.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Cluster } from './cluster.ts';
import type { ClusterTaken } from './cluster-guard.ts';
import type { Scope } from './contract.ts';

const PLANES = { apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedControlPlane' };

export class RefusalReport {
  readonly #management: Cluster;
  readonly #metrics: Metrics;
  /** By name: what was told. */
  readonly #told = new Map<string, string>();

  constructor(input: { readonly management: Cluster; readonly metrics: Metrics }) {
    this.#management = input.management;
    this.#metrics = input.metrics;
  }

  refused(scope: Scope, taken: ClusterTaken): void {
    const { name } = scope;
    const { holder } = taken;
    this.#metrics.samples(sourceOf(name), [
      {
        name: 'pullwright_hosted_cluster_refused',
        help: 'Hosted clusters whose kubeconfig leads to the cluster of another one, or to the management cluster',
        value: 1,
        labels: { scope: name, holder },
      },
    ]);
    this.tell(scope, taken);
  }

  /** An Event with why the cluster is not looked after, unless it was told already. */
  tell({ name, controlPlaneNamespace }: Scope, { code, message, hint = '' }: PullwrightError): void {
    // Said by the one that leads, once.
    if (!this.#management.mayWrite || this.#told.get(name) === message) return;
    this.#told.set(name, message);
    for (const { apiVersion, kind, metadata } of this.#management.cache.store.list(
      PLANES,
      controlPlaneNamespace,
    )) {
      const { namespace = '', name: plane, uid } = metadata;
      const regarding = { apiVersion, kind, namespace, name: plane, ...(uid === undefined ? {} : { uid }) };
      this.#management.events
        .record({ regarding, type: 'Warning', reason: code, action: 'Connect', note: `${message}. ${hint}` })
        .catch(() => this.#told.delete(name));
    }
  }

  /** `name` is refused no more. */
  over(name: string): void {
    this.#told.delete(name);
    this.#metrics.samples(sourceOf(name), []);
  }
}

function sourceOf(name: string): string {
  return `discovery ${name}`;
}
