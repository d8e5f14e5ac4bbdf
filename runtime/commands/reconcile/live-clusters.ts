/** Opens the clusters that the flags of `reconcile` name. */
import { Cluster, notLeader } from '../../controller/cluster.ts';
import { ClusterCache } from '../../controller/cluster-cache.ts';
import { proxyFor } from '../../http/proxy.ts';
import type { Connection } from '../../kube/connection.ts';
import { EventRecorder } from '../../kube/events.ts';
import { HttpKubeClient } from '../../kube/http-client.ts';
import type { InformerTiming } from '../../kube/informer.ts';
import { loadConnection } from '../../kube/kubeconfig.ts';
import { redact } from '../../rules/redacted.ts';
import { VERSION } from '../../rules/version.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { CommandIo } from '../command.ts';

export interface ClusterOpener {
  readonly io: CommandIo;
  readonly metrics: Metrics;
  /** Pod name, for events. */
  readonly instance: string;
  readonly mayWrite: () => boolean;
  readonly timing?: Partial<InformerTiming>;
}

/** Written by those that do not lead, too: it is how one comes to lead. */
const LEASES = '/apis/coordination.k8s.io/';

/** The cluster of a kubeconfig, or of the pod. */
export async function openKubeconfig(file: string | undefined, opener: ClusterOpener): Promise<Cluster> {
  return openCluster(await loadConnection(file, opener.io.env), opener);
}

/** The cluster at the other end of `connection`. */
export async function openCluster(connection: Connection, opener: ClusterOpener): Promise<Cluster> {
  const { metrics, io } = opener;
  const proxy = connection.proxy === undefined ? proxyFor(connection.server, io.env) : undefined;
  const proxied = proxy === undefined ? connection : { ...connection, proxy: redact(proxy) };
  const { host } = new URL(connection.server);
  const client = new HttpKubeClient({
    connection: proxied,
    // Which replica it was stands in the API server's audit log.
    userAgent: `pullwright/${VERSION} (${opener.instance.replaceAll(/[^\w.-]/g, '')})`,
    onRequest: (seen) => metrics.request({ ...seen, host }),
    // The pass has asked before; since then it may have waited for its turn, a token or another try, and this process may have been frozen.
    fence: ({ path }) => {
      if (!opener.mayWrite() && !path.startsWith(LEASES)) throw notLeader();
    },
  });
  return new Cluster({
    server: connection.server,
    client,
    cache: new ClusterCache(client, opener.timing),
    events: new EventRecorder({
      client,
      controller: 'pullwright.dev/reconciler',
      instance: opener.instance,
      now: () => Date.now(),
    }),
    mayWrite: opener.mayWrite,
  });
}
