/** A pod that was admitted without the names it should have. */
import type { KubeObject } from '../../rules/kubernetes/object.ts';

/** A pod that lacks names. */
export interface UninjectedPod {
  readonly pod: KubeObject;
  readonly missing: readonly string[];
  /** Profiles and SidecarSets that would have added them. */
  readonly by: readonly string[];
  /** A container waits because its image cannot be pulled. */
  readonly stuck: boolean;
}
