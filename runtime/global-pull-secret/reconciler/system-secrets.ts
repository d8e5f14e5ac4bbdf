/** The Secrets that the merge is made of. */
import type { KubeObject } from '../../rules/kubernetes/object.ts';

/** The Secrets of the system as they are. */
export interface SystemSecrets {
  readonly platform: KubeObject | undefined;
  readonly additional: KubeObject | undefined;
  readonly original: KubeObject | undefined;
  readonly global: KubeObject | undefined;
}
