/** What the agent asks the API server, each only when an option wants it: a node that asks nobody loads none of it. */
import type { Daemon } from '../../node/daemon.ts';
import type { NodeReporter } from '../../node/reporter.ts';
import type { Turns } from '../../node/restart-turns.ts';
import { describeError } from '../../rules/errors.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { SecretWatch } from './secret-watch.ts';

export interface ApiServerOptions {
  readonly nodeName: string;
  readonly serviceAccountDir: string;
}

/** What every one of them works with. */
export interface Surroundings extends Daemon {
  /** Ends the wait of the loop. */
  readonly notice: () => void;
}

/** The window of those who cannot ask: the time in which the kubelet reads its file anew by itself. */
const FALLBACK_WINDOW_MS = 300_000;
/** How long the first look waits for the secrets. */
const FIRST_SIGHT_MS = 3000;

/** Books the turn of this node at the restart. */
export async function openTurns(options: ApiServerOptions, around: Surroundings): Promise<Turns> {
  const { env, clock, event, notice } = around;
  const [{ BookedTurns }, { podClient }] = await Promise.all([
    import('../../node/restart-turns.ts'),
    import('./client.ts'),
  ]);
  const { namespace } = NAMES;
  return new BookedTurns({
    client: () => podClient(env, options.serviceAccountDir, { timeoutMs: 5000, tries: 2 }),
    lease: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name: NAMES.turns },
    daemonSet: { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace, name: NAMES.syncer },
    nodeName: options.nodeName,
    fallbackMs: FALLBACK_WINDOW_MS,
    clock,
    granted: notice,
    onError: (error) => event({ event: 'turn-failed', error }),
  });
}

/** Tells about the node. A report that takes long is no longer worth it. */
export async function openReporter(options: ApiServerOptions, around: Daemon): Promise<NodeReporter> {
  const [{ NodeReporter }, { AGENT_WORDS }, { podClient }] = await Promise.all([
    import('../../node/reporter.ts'),
    import('./report.ts'),
    import('./client.ts'),
  ]);
  const { env, clock, log } = around;
  return new NodeReporter({
    words: AGENT_WORDS,
    client: () => podClient(env, options.serviceAccountDir, { timeoutMs: 5000, tries: 2 }),
    nodeName: options.nodeName,
    clock,
    onError: (error) => log.warn('Cannot report to the API server', { error: describeError(error) }),
  });
}

/** Watches the two secrets. Comes back when they are known, or when that takes too long. */
export async function openWatch(options: ApiServerOptions, around: Surroundings): Promise<SecretWatch> {
  const [{ SecretWatch }, { podClient }] = await Promise.all([
    import('./secret-watch.ts'),
    import('./client.ts'),
  ]);
  const { env, clock, log, notice } = around;
  const client = () => podClient(env, options.serviceAccountDir);
  const watch = new SecretWatch({ client, clock, log, changed: notice });
  await watch.open(FIRST_SIGHT_MS);
  return watch;
}
