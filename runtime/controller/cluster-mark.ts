/** By what a cluster is known, whatever address leads to it: the UID of its namespace `kube-system`. */
import { afterAttended } from '../http/client.ts';
import { isApiError } from '../kube/api-error.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { Cluster } from './cluster.ts';

const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace', name: 'kube-system' };
/** More than a namespace can have: a cluster that sends more is asked again and again, and each time costs the others. */
const MOST_BYTES = 4 * 1024 * 1024;
/** A cluster that does not answer in this time is tried again later. */
const PATIENCE_MS = 10_000;

/** A mark that is only an address: of clusters whose namespace may not be read. */
const ADDRESS = 'server ';

/**
 * The UID, or the address where the rights do not reach so far.
 *
 * @param signal nobody wants to know any more
 * @throws PullwrightError when the cluster does not answer
 */
export async function clusterMark(cluster: Cluster, signal?: AbortSignal): Promise<string> {
  try {
    const asked = cluster.client.get(NAMESPACE, { maxBytes: MOST_BYTES });
    const found = await inTime(asked, cluster.client.host, signal);
    const uid = found?.metadata.uid;
    if (typeof uid === 'string' && uid !== '') return uid;
  } catch (error) {
    if (!isApiError(error, 403)) throw error;
  }
  return `${ADDRESS}${cluster.server}`;
}

/** Whether `mark` is but an address: another one may lead to the same cluster. */
export function isAddress(mark: string): boolean {
  return mark.startsWith(ADDRESS);
}

/** For people. */
export function describeMark(mark: string): string {
  return isAddress(mark) ? mark : `kube-system has uid ${mark}`;
}

async function inTime<T>(answer: Promise<T>, host: string, signal: AbortSignal | undefined): Promise<T> {
  // Told to nobody when it comes too late.
  answer.catch(() => undefined);
  const late = Promise.withResolvers<never>();
  const end = (): void => late.reject(silent(host));
  const cancel = afterAttended(PATIENCE_MS, end);
  if (signal?.aborted === true) end();
  signal?.addEventListener('abort', end, { once: true });
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    cancel();
    signal?.removeEventListener('abort', end);
  }
}

function silent(host: string): PullwrightError {
  return new PullwrightError(
    `Cannot ask "${host}" which cluster it is: no answer in ${PATIENCE_MS / 1000} s`,
    { code: 'ClusterSilent' },
  );
}
