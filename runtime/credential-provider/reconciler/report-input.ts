/** What the reports are made of. */
import type { NodeFile } from '../../../charts/credential-provider/machine-config.ts';
import type { Apply, Ref, World } from '../../controller/contract.ts';
import type { MatchImageVerdict } from '../../rules/credential-provider/merge.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { Pool } from '../pools.ts';
import type { NodePool } from './node-pools.ts';

export interface PoolState {
  readonly pool: Pool;
  /** For a hosted cluster. */
  readonly nodePools: readonly NodePool[];
  /** Name of what is rendered. */
  readonly configName: string;
  readonly verdicts: readonly MatchImageVerdict[];
  readonly hold?: NodeHold;
  /** Why nothing can be rendered: the kubelet of the pool cannot be pointed at a file. What was rendered goes. */
  readonly noPlace?: string;
  /** What may keep the file from its kubelets although it is rendered. */
  readonly warning?: string;
  readonly files: readonly NodeFile[];
  /** The MachineConfig or ConfigMap that is there. */
  readonly present: KubeObject | undefined;
  /** The one that should be. */
  readonly wanted: KubeObject;
}

export interface NodesReportInput {
  readonly world: World;
  readonly object: KubeObject;
  readonly states: readonly PoolState[];
  /** Entries that the definition of the kind takes. */
  readonly patterns: readonly string[];
  /** What it refuses. */
  readonly faults: readonly MatchImageVerdict[];
  /** Who manages the object instead of us. */
  readonly elsewhere: string | undefined;
  /** Whether there is anything to render for. */
  readonly isServed: boolean;
  /** Whether a DaemonSet installs the provider where there is nothing to render for. */
  readonly installer: boolean;
  readonly apply: readonly Apply[];
  readonly keep: readonly Ref[] | 'all';
}

/** Why a pool is not rendered, and what is rendered stays. */
export interface NodeHold {
  readonly reason: 'PlatformUnclear' | 'KubeletRefuses' | 'UnsupportedVersion' | 'Contested';
  readonly message: string;
}
