/**
 * What became of the tenant's entries where HyperShift's operator makes the merge: what its `global-pull-secret` really holds,
 * why it refused the additional secret, and what would be otherwise if we made the merge. Pure.
 *
 * Source of the rule: `globalps` of HyperShift: keys are compared as texts, the platform's entry replaces the tenant's, and one
 * entry that the kubelet cannot read refuses the whole additional secret.
 */

import { digestOfNode, meaningOf } from '../../core/docker-config/encode.ts';
import { parseDockerConfig, secretText } from '../../core/docker-config/pull-secret.ts';
import type { JsonNode } from '../../core/go/json.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import { type Redacted, reveal } from '../../core/redacted.ts';
import { counted } from '../../core/text.ts';
import { configHash } from '../eligibility.ts';
import { HASH_LABEL } from '../options.ts';

/** The Secrets, as they are. */
export interface ObservedSecrets {
  readonly additional: KubeObject | undefined;
  readonly original: KubeObject | undefined;
  readonly global: KubeObject | undefined;
}

/** Why HyperShift's operator refuses the additional secret, the end of a sentence; undefined when it takes it. */
export function upstreamRefusal(text: Redacted<string> | undefined): string | undefined {
  if (text === undefined) return 'it has no ".dockerconfigjson"';
  const parsed = parseDockerConfig(text);
  if (!parsed.ok) return `it ${parsed.problem.message}`;
  const broken = parsed.config.entries.find(({ kubelet }) => kubelet === undefined);
  if (broken !== undefined)
    return `its entry "${broken.key.written}" ${broken.fault?.message ?? 'cannot be read'}`;
  if (parsed.config.kubeletFault !== undefined) return 'one of its fields is not what the kubelet can read';
  return parsed.config.entries.length === 0 ? 'it has no entry' : undefined;
}

/**
 * Verdicts on what is, from those on what we would do.
 *
 * @param planned the verdicts of our own merge
 */
export function observedVerdicts(
  secrets: ObservedSecrets,
  planned: readonly EntryStatus[],
): readonly EntryStatus[] {
  const text = secrets.additional === undefined ? undefined : secretText(secrets.additional);
  const refusal = upstreamRefusal(text);
  const wanted = entryDigests(text);
  const inForce = entryDigests(secrets.global && secretText(secrets.global));
  const platform = entryDigests(secrets.original && secretText(secrets.original));
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
    Rejected: 'would be left out',
  };
  const text = would[verdict];
  return text === undefined ? '' : `; in a merge of ours it ${text} (${reason})`;
}

/** Digest of what each entry means, by its key as a text; none of what cannot be read. */
export function entryDigests(text: Redacted<string> | undefined): ReadonlyMap<string, string> {
  const parsed = text === undefined ? undefined : parseDockerConfig(text);
  const entries = parsed?.ok === true ? parsed.config.entries : [];
  const digest = (value: Redacted<JsonNode>): string => digestOfNode(meaningOf(reveal(value)));
  return new Map(entries.map(({ key, value }) => [key.written, digest(value)]));
}

// What can be known of nodes to which HyperShift's own agents bring the pull secret: they report nothing, but their DaemonSet names
// the content by a hash, and its status says on how many nodes pods of that template run. Pure.
// Source of the rule: `globalps` of HyperShift, which replaces the pods for each content.

/** One verdict; none where there is nothing to bring, or the DaemonSet is not HyperShift's. */
export function observedNodes(
  daemonSet: KubeObject | undefined,
  { global, original }: Pick<ObservedSecrets, 'global' | 'original'>,
): readonly EntryStatus[] {
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
