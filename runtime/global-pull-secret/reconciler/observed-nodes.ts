/**
 * What can be known of nodes to which HyperShift's own agents bring the pull secret: they report nothing, but their DaemonSet names
 * the content by a hash, and its status says on how many nodes pods of that template run. Pure.
 *
 * Source of the rule: `globalps` of HyperShift, which replaces the pods for each content.
 */
import { HASH_LABEL } from '../../../charts/global-pull-secret/options.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { Verdict } from '../../rules/kubernetes/pull-status.ts';
import { counted } from '../../rules/text/counted.ts';
import { configHash } from './config-hash.ts';
import type { ObservedSecrets } from './observed-verdicts.ts';
import { secretText } from './platform.ts';

/** One verdict; none where there is nothing to bring, or the DaemonSet is not HyperShift's. */
export function observedNodes(
  daemonSet: KubeObject | undefined,
  { global, original }: Pick<ObservedSecrets, 'global' | 'original'>,
): readonly Verdict[] {
  const secret = global ?? original;
  const text = secret === undefined ? undefined : secretText(secret);
  if (secret === undefined || text === undefined) return [];
  if (daemonSet === undefined)
    return [
      said('Warning', 'NoAgents', 'there is no DaemonSet, so that HyperShift brings no node what is there'),
    ];
  const hash = hashIn(daemonSet);
  if (hash === undefined) return [];
  if (hash !== configHash(text))
    return [
      said(
        'Pending',
        'OlderContent',
        `HyperShift's agents bring another state than ${secret.metadata.name} has now`,
      ),
    ];
  return [agentsVerdict(daemonSet, secret.metadata.name)];
}

function hashIn({ spec }: KubeObject): string | undefined {
  const { template } = (spec ?? {}) as {
    readonly template?: { readonly metadata?: { readonly labels?: Readonly<Record<string, string>> } };
  };
  return template?.metadata?.labels?.[HASH_LABEL];
}

function agentsVerdict({ metadata, status }: KubeObject, name: string): Verdict {
  const {
    observedGeneration = 0,
    desiredNumberScheduled: all = 0,
    updatedNumberScheduled: updated = 0,
    numberReady: ready = 0,
  } = (status ?? {}) as Readonly<Record<string, number>>;
  const { generation } = metadata as { readonly generation?: number };
  const seen = observedGeneration >= (generation ?? 0);
  const count = seen ? Math.min(updated, ready) : 0;
  const message = `HyperShift's agents run with ${name} as it is now on ${count} of ${counted(all, 'node')}; what is in the files there they do not say`;
  if (seen && all === 0) return said('Warning', 'NoNodes', message);
  return count === all && seen
    ? said('Accepted', 'AgentsHaveIt', message)
    : said('Pending', 'AgentsBehind', message);
}

function said(verdict: Verdict['verdict'], reason: string, message: string): Verdict {
  return { subject: 'nodes', verdict, reason, message };
}
