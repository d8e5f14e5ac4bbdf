/** Options of the global pull secret reconciler, read from the configuration of `reconcile`. */

import type { AgentOptions, Enforcement } from '../../../charts/global-pull-secret/objects.ts';
import { OPENSHIFT_PRIORITY_CLASS, STANDALONE_AGENT } from '../../../charts/global-pull-secret/options.ts';
import type { RemovalOptions } from '../../rules/docker-config/removal-guard.ts';
import { UsageError } from '../../rules/errors.ts';
import { parseGoDuration } from '../../rules/go/duration.ts';
import { type LabelRequirement, readSelector } from '../../rules/kubernetes/label-selector.ts';
import { isRecord } from '../../rules/record.ts';
import { DEFAULT_IMAGE } from '../../rules/version.ts';
import { readAgentOptions } from './agent-options.ts';
import { ELIGIBLE_PLATFORMS } from './eligibility.ts';

export interface GlobalPullSecretOptions {
  /** `reconciler`: apply DaemonSet and RBAC; `gitops`: they are in git, report when they are missing. @default {'reconciler'} */
  readonly delivery: 'reconciler' | 'gitops';
  /** `auto` observes where HyperShift's operator is seen to manage the objects, else owns. @default {'auto'} */
  readonly mode: 'auto' | 'own' | 'observe';
  /** Platforms whose Replace pools are eligible. @default {['AWS', 'Azure']} */
  readonly platforms: readonly string[];
  /** Nodes that get the credentials beside those of eligible pools. @default all Linux nodes when stand-alone, else none */
  readonly nodes?: readonly LabelRequirement[];
  /** What admission does with an additional secret of the wrong form. @default {'warn'} */
  readonly enforce: Enforcement;
  /** How much a change of the platform's pull secret may remove without a confirmation. */
  readonly removals?: RemovalOptions;
  /** The node agent; `image` is the executable's image. */
  readonly agent: AgentOptions;
  /** Hosted clusters that differ, by `<namespace>/<name>` of their HostedCluster. @default none differs */
  readonly clusters?: ReadonlyMap<string, GlobalPullSecretOptions>;
}

/** The options for one cluster. Hosted clusters are OpenShift, where the agent has the priority class of HyperShift's own. */
export function optionsFor(options: GlobalPullSecretOptions, scope: string): GlobalPullSecretOptions {
  const own = options.clusters?.get(scope) ?? options;
  return scope === 'local'
    ? { ...own, agent: { ...STANDALONE_AGENT, ...own.agent } }
    : { ...own, agent: { priorityClassName: OPENSHIFT_PRIORITY_CLASS, ...own.agent } };
}

/**
 * Checks a map of options.
 *
 * @throws UsageError that names every wrong field
 */
export function parseOptions(raw: Readonly<Record<string, unknown>>): GlobalPullSecretOptions {
  const problems: string[] = [];
  const choice = <T extends string>(field: string, allowed: readonly T[], fallback: T): T => {
    const value = raw[field] ?? fallback;
    if (allowed.includes(value as T)) return value as T;
    problems.push(`${field}: must be one of ${allowed.join(', ')}`);
    return fallback;
  };
  for (const field of Object.keys(raw)) {
    if (
      !['delivery', 'mode', 'platforms', 'nodes', 'enforce', 'removals', 'agent', 'clusters'].includes(field)
    )
      problems.push(
        `${field}: no such option, expected delivery, mode, platforms, nodes, enforce, removals, agent or clusters`,
      );
  }
  const platforms = raw['platforms'] ?? ELIGIBLE_PLATFORMS;
  if (!Array.isArray(platforms) || platforms.some((one) => typeof one !== 'string'))
    problems.push('platforms: must be a list of names');
  const agent = readAgentOptions(raw['agent'] ?? {}, problems);
  const options: GlobalPullSecretOptions = {
    delivery: choice('delivery', ['reconciler', 'gitops'], 'reconciler'),
    mode: choice('mode', ['auto', 'own', 'observe'], 'auto'),
    platforms: platforms as readonly string[],
    enforce: choice('enforce', ['warn', 'deny', 'off'], 'warn'),
    ...nodes(raw, problems),
    ...removals(raw, problems),
    agent: {
      image: DEFAULT_IMAGE,
      ...agent,
      ...removalsOfAgent(raw),
    },
  };
  if (problems.length > 0)
    throw new UsageError(`Cannot use the options of global-pull-secret: ${problems.join('; ')}`);
  const clusters = parseClusters(raw);
  return clusters === undefined ? options : { ...options, clusters };
}

/** `nodes` is a label selector, as Kubernetes has it. */
function nodes(
  raw: Readonly<Record<string, unknown>>,
  problems: string[],
): Pick<GlobalPullSecretOptions, 'nodes'> {
  if (raw['nodes'] === undefined) return {};
  const read = readSelector(raw['nodes']);
  if (read.ok) return { nodes: read.requirements };
  problems.push(`nodes: ${read.problem}`);
  return {};
}

/** `removals: {share: 0.5, delay: 24h}`; both may be left out. */
function removals(
  raw: Readonly<Record<string, unknown>>,
  problems: string[],
): { readonly removals?: RemovalOptions } {
  const value = raw['removals'];
  if (value === undefined) return {};
  if (!isRecord(value)) {
    problems.push('removals: must be a map of share and delay');
    return {};
  }
  const { share, delay, ...rest } = value;
  for (const unknown of Object.keys(rest))
    problems.push(`removals.${unknown}: no such option, expected share or delay`);
  return { removals: { ...shareOf(share, problems), ...delayOf(delay, problems) } };
}

/** The agents judge by the same numbers what the reconciler has not written. */
function removalsOfAgent({
  removals: given,
}: Readonly<Record<string, unknown>>): Pick<AgentOptions, 'removals'> {
  return given === undefined ? {} : { removals: given as NonNullable<AgentOptions['removals']> };
}

function shareOf(share: unknown, problems: string[]): Pick<RemovalOptions, 'share'> {
  if (typeof share === 'number' && share >= 0 && share <= 1) return { share };
  if (share !== undefined) problems.push('removals.share: must be a number from 0 to 1');
  return {};
}

function delayOf(delay: unknown, problems: string[]): Pick<RemovalOptions, 'delayMs'> {
  const nanoseconds = typeof delay === 'string' ? parseGoDuration(delay) : undefined;
  if (nanoseconds !== undefined && nanoseconds >= 0) return { delayMs: nanoseconds / 1e6 };
  if (delay !== undefined) problems.push('removals.delay: must be a duration, such as 24h');
  return {};
}

/** Each cluster has the options of all, with its own over them. */
function parseClusters(
  raw: Readonly<Record<string, unknown>>,
): ReadonlyMap<string, GlobalPullSecretOptions> | undefined {
  const { clusters, ...common } = raw;
  if (clusters === undefined) return undefined;
  if (!isRecord(clusters))
    throw new UsageError(
      'Cannot use the options of global-pull-secret: clusters: expected a map by namespace/name',
    );
  return new Map(
    Object.entries(clusters as Readonly<Record<string, object>>).map(([scope, own]) => [
      scope,
      parseOptions({ ...common, ...own }),
    ]),
  );
}
