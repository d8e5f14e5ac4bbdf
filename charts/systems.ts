/**
 * The systems that a fleet file can enable.
 *
 * To add a system:
 * 1. Objects that a program also applies: plain functions in the root of `runtime/<system>`.
 * 2. `charts/<system>/chart.ts`: a strict zod schema of the section, each field with `.describe()`, the inferred type
 *    (`export type Input = Frozen<z.input<typeof schema>>`), and
 *    `export const <system>System: ChartSystem<Config, Input>`; for users of the library also a construct:
 *    `class X extends ObjectGroup { constructor(scope, id, props) { super(scope, id, objectsOf(props)); } }`.
 *    A reconciler: `reconciler` for stand-alone clusters, `managementReconciler` for the hosted clusters of a management
 *    cluster, both with RBAC for its reads and writes; `test/charts/access.test.ts` checks it.
 * 3. One line in {@link SYSTEMS} and one in {@link SystemInputs}; export the construct from `charts/mod.ts`.
 * 4. `UPDATE_GOLDEN=1 node test/run.ts charts/synth && node main.ts synth`: the JSON Schema in `docs` and the rendered trees.
 *
 * CRDs are built with `runtime/core/kubernetes/kind.ts`. The API group decides between the base and `overlays/<API group>`: see
 * `charts/output.ts`.
 */

import type { CredentialProviderInput } from '../runtime/credential-provider/options.ts';
import type { GlobalPullSecretInput } from '../runtime/global-pull-secret/options.ts';
import type { PullSecretInjectionInput } from '../runtime/pull-secret-injection/options.ts';
import { credentialProviderSystem } from './credential-provider/chart.ts';
import { globalPullSecretSystem } from './global-pull-secret/chart.ts';
import { type PullSecretAdapterInput, pullSecretAdapterSystem } from './pull-secret-adapter/chart.ts';
import { pullSecretInjectionSystem } from './pull-secret-injection/chart.ts';
import { type RegistryOverridesInput, registryOverridesSystem } from './registry-overrides/chart.ts';
import type { ChartSystem } from './shared/system.ts';
import { type VerifyInput, verifySystem } from './verify/chart.ts';

/** Sections under `systems:` as input. `false` disables a section of `defaults`; `true` uses all default values. */
export interface SystemInputs {
  readonly 'global-pull-secret'?: GlobalPullSecretInput | boolean;
  readonly 'pull-secret-injection'?: PullSecretInjectionInput | boolean;
  readonly 'pull-secret-adapter'?: PullSecretAdapterInput | boolean;
  readonly 'registry-overrides'?: RegistryOverridesInput | boolean;
  readonly 'credential-provider'?: CredentialProviderInput | boolean;
  readonly verify?: VerifyInput | boolean;
}

/** In documentation order. */
export const SYSTEMS: readonly ChartSystem[] = [
  globalPullSecretSystem,
  pullSecretInjectionSystem,
  registryOverridesSystem,
  credentialProviderSystem,
  pullSecretAdapterSystem,
  verifySystem,
];
