/** Something that an account can do, and what lets it. */
import type { PolicyBound } from './bounds.ts';

/** Something that an account can do. */
export interface Right {
  /** e.g. `ServiceAccount pullwright-system/pullwright-reconciler` */
  readonly account: string;
  /** e.g. `read-secrets` */
  readonly power: string;
  /** The same in words. */
  readonly can: string;
  /** Absent: everywhere. */
  readonly namespace?: string;
  /** Absent: whatever the name. */
  readonly names?: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** Roles, the place of the rule in each, and bindings; for what follows from other rights, these. */
  readonly by: readonly string[];
  readonly boundBy: readonly PolicyBound[];
  /** Why it is that wide, where it is. */
  readonly reason?: string;
  /** It reaches into every namespace, or to objects without one whatever their name; or it leads to other rights. */
  readonly wide: boolean;
}
