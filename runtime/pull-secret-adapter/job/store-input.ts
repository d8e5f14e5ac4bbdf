/** What the steps of storing a pull secret work with. */
import type { Redacted } from '../../rules/redacted.ts';
import type { RetirementPolicy } from './retirement.ts';
import type { Replication, SecretManager } from './secret-manager.ts';

export interface StoreInput {
  readonly manager: Pick<
    SecretManager,
    'get' | 'create' | 'update' | 'addVersion' | 'access' | 'versions' | 'disable' | 'destroy'
  >;
  readonly secretName: string;
  readonly content: Redacted<string>;
  readonly labels: Readonly<Record<string, string>>;
  readonly replication: Replication | undefined;
  /** Of a regional secret; undefined for one that Google replicates. */
  readonly location: string | undefined;
  readonly generation: number;
  /** What becomes of older versions. */
  readonly policy: RetirementPolicy;
  /** Any text by which somebody asks for older versions to be revoked at once; empty: nobody does. */
  readonly revoke: string;
  readonly adopt: boolean;
  /** Unique among runners. */
  readonly runner: string;
  readonly now: () => number;
  readonly pause: (ms: number) => Promise<void>;
  readonly log: (operation: string, message: string, version?: string) => void;
  /** Takes the call of a step that was left out because it is not permitted. */
  readonly leftOut: (call: string) => void;
}
