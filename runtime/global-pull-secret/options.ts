/** Options of the global pull secret reconciler, read from the configuration of `reconcile`. */

import type { AgentOptions, Enforcement } from '../../charts/global-pull-secret/objects.ts';
import { UsageError } from '../rules/errors.ts';
import { ELIGIBLE_PLATFORMS } from './eligibility.ts';

export interface GlobalPullSecretOptions {
  /** `reconciler`: apply DaemonSet and RBAC; `gitops`: they are in git, report when they are missing. @default {'reconciler'} */
  readonly delivery: 'reconciler' | 'gitops';
  /** `auto` observes where HyperShift's operator is seen to manage the objects, else owns. @default {'auto'} */
  readonly mode: 'auto' | 'own' | 'observe';
  /** Platforms whose Replace pools are eligible. @default {['AWS', 'Azure']} */
  readonly platforms: readonly string[];
  /** What admission does with an additional secret of the wrong form. @default {'warn'} */
  readonly enforce: Enforcement;
  /** The node agent; `image` is the executable's image. */
  readonly agent: AgentOptions;
}

const DEFAULT_IMAGE = 'ghcr.io/pullwright/pullwright:0.1.0';

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
    problems.push(`${field}: wanted one of ${allowed.join(', ')}`);
    return fallback;
  };
  for (const field of Object.keys(raw)) {
    if (!['delivery', 'mode', 'platforms', 'enforce', 'agent'].includes(field))
      problems.push(`${field}: no such option, wanted delivery, mode, platforms, enforce or agent`);
  }
  const platforms = raw['platforms'] ?? ELIGIBLE_PLATFORMS;
  if (!Array.isArray(platforms) || platforms.some((one) => typeof one !== 'string'))
    problems.push('platforms: wanted a list of names');
  const agent = raw['agent'] ?? {};
  if (typeof agent !== 'object' || Array.isArray(agent)) problems.push('agent: wanted a map of options');
  const options: GlobalPullSecretOptions = {
    delivery: choice('delivery', ['reconciler', 'gitops'], 'reconciler'),
    mode: choice('mode', ['auto', 'own', 'observe'], 'auto'),
    platforms: platforms as readonly string[],
    enforce: choice('enforce', ['warn', 'deny', 'off'], 'warn'),
    agent: { image: DEFAULT_IMAGE, ...(agent as Partial<AgentOptions>) },
  };
  if (problems.length > 0)
    throw new UsageError(`Cannot use the options of global-pull-secret: ${problems.join('; ')}`);
  return options;
}
