/**
 * What became of the tenant's entries where HyperShift's operator makes the merge: what its `global-pull-secret` really holds,
 * why it refused the additional secret, and what would be otherwise if we made the merge. Pure.
 *
 * Source of the rule: `globalps` of HyperShift: keys are compared as texts, the platform's entry replaces the tenant's, and one
 * entry that the kubelet cannot read refuses the whole additional secret.
 */

import { digestOfNode, meaningOf } from '../../core/docker-config/encode.ts';
import type { PullSecret } from '../../core/docker-config/pull-secret.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import { reveal } from '../../core/redacted.ts';
import { counted, withoutUserInfo } from '../../core/text.ts';
import { configHash } from '../eligibility.ts';
import { HASH_LABEL } from '../options.ts';
import type { SystemSecrets } from './plan.ts';

/** Why HyperShift's operator rejects the additional secret, as the end of a sentence; undefined when it accepts it. */
export function upstreamRefusal(secret: PullSecret | undefined): string | undefined {
  if (secret?.value === undefined) return 'it has no ".dockerconfigjson"';
  if (secret.problem !== undefined) return `it ${secret.problem.message}`;
  const broken = secret.entries.find(({ kubelet }) => kubelet === undefined);
  if (broken !== undefined)
    return `its entry "${withoutUserInfo(broken.key.written)}" ${broken.fault?.message ?? 'cannot be read'}`;
  if (secret.kubeletFault !== undefined) return 'one of its fields is not what the kubelet can read';
  return secret.entries.length === 0 ? 'it has no entry' : undefined;
}

/**
 * Verdicts on what is, from those on what we would do.
 *
 * @param planned the verdicts of our own merge
 */
export function observedVerdicts(
  secrets: SystemSecrets,
  planned: readonly EntryStatus[],
): readonly EntryStatus[] {
  const refusal = upstreamRefusal(secrets.additional);
  const wanted = entryDigests(secrets.additional);
  const inForce = entryDigests(secrets.global);
  const platform = entryDigests(secrets.original);
  return planned.map((verdict) => {
    const value = wanted.get(verdict.subject);
    if (value === undefined) return verdict;
    const present = inForce.get(verdict.subject);
    const own = ownVerdict(verdict);
    const says = (kind: EntryStatus['verdict'], reason: string, message: string): EntryStatus => ({
      subject: verdict.subject,
      verdict: kind,
      reason,
      message: `${message}${own}`,
    });
    if (present === value)
      return says('Accepted', 'InGlobalPullSecret', 'is in global-pull-secret as HyperShift made it');
    if (platform.has(verdict.subject))
      return says(
        'Shadowed',
        'OriginalWins',
        'is in the original pull secret too, which wins in global-pull-secret',
      );
    if (refusal !== undefined)
      return says(
        'Rejected',
        'UpstreamRejectsAll',
        `is not in use: HyperShift refuses the whole additional pull secret, because ${refusal}`,
      );
    const what =
      present === undefined
        ? 'is not in global-pull-secret'
        : 'is in global-pull-secret with another credential';
    return says('Pending', 'NotTaken', `${what}, which HyperShift makes`);
  });
}

/** What would be different if the merge were ours. */
function ownVerdict({ verdict, reason }: EntryStatus): string {
  const would: Partial<Record<EntryStatus['verdict'], string>> = {
    Accepted: 'would be used',
    Shadowed: 'would be shadowed',
    Rejected: 'would be ignored',
  };
  const text = would[verdict];
  return text === undefined ? '' : `; in a merge of ours it ${text} (${reason})`;
}

/** Digest of what each entry means, by its key as a text; none of what cannot be read. */
export function entryDigests(secret: PullSecret | undefined): ReadonlyMap<string, string> {
  const entries = secret?.entries ?? [];
  return new Map(entries.map(({ key, value }) => [key.written, digestOfNode(meaningOf(reveal(value)))]));
}

// What can be known of nodes to which HyperShift's own agents bring the pull secret: they report nothing, but their DaemonSet names
// the content by a hash, and its status says on how many nodes pods of that template run. Pure.
// Source of the rule: `globalps` of HyperShift, which replaces the pods for each content.

/** One verdict; none where there is nothing to bring, or the DaemonSet is not HyperShift's. */
export function observedNodes(
  daemonSet: KubeObject | undefined,
  { global, original }: Pick<SystemSecrets, 'global' | 'original'>,
): readonly EntryStatus[] {
  const found = global ?? original;
  if (found?.value === undefined) return [];
  const { secret, text } = found;
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

function agentsVerdict({ metadata, status }: KubeObject, name: string): EntryStatus {
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

function said(verdict: EntryStatus['verdict'], reason: string, message: string): EntryStatus {
  return { subject: 'nodes', verdict, reason, message };
}
