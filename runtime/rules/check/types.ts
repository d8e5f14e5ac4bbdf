/** What an installation is checked with, and what is said of it. */

import type { LabelRequirement } from '../kubernetes/label-selector.ts';
import type { KubeObject } from '../kubernetes/object.ts';

/** `fail`: what is rendered does not work there. `warn`: it works, and somebody should know. */
export type CheckLevel = 'ok' | 'warn' | 'fail';

/** One thing that was looked at. */
export interface CheckLine {
  /** `kubernetes`, `crds`: stable, for programs. */
  readonly check: string;
  readonly level: CheckLevel;
  readonly message: string;
  /** What to do, in one sentence or command. */
  readonly fix?: string;
}

/** Whether the account that asks may do something. */
export interface AskedRight {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string;
  readonly allowed: boolean;
}

/** What is looked at. */
export interface CheckInput {
  /** Objects of the cluster. */
  readonly objects: readonly KubeObject[];
  /** What the fleet renders for it. */
  readonly plan: readonly KubeObject[];
  /** Names of the systems that the fleet switches on. */
  readonly systems: readonly string[];
  /** Nodes that the fleet takes into the global pull secret; all Linux nodes where it says nothing of a stand-alone cluster. */
  readonly nodes: readonly LabelRequirement[] | 'linux' | 'pools';
  /** Of the API server, such as `v1.36.2`; undefined in a folder. */
  readonly serverVersion?: string;
  /** Undefined in a folder, where nobody asks. */
  readonly rights?: readonly AskedRight[];
  /** A cluster, where what is not found does not exist; a folder may hold a part of one. */
  readonly live: boolean;
}

/** Objects of a kind. */
export function ofKind(objects: readonly KubeObject[], ...kinds: readonly string[]): readonly KubeObject[] {
  return objects.filter(({ kind }) => kinds.includes(kind));
}

/** Names of a list, the first few of them. */
export function fewNames(names: readonly string[], most = 4): string {
  const rest = names.length - most;
  return `${names.slice(0, most).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
