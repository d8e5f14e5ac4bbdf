/** The one environment variable by which a component without a container runtime learns of the mirrors. */
import {
  formatImageOverrides,
  OVERRIDES_ENV,
  type OverrideMap,
} from '../rules/registry-overrides/registry-overrides.ts';

export interface EnvVariable {
  readonly name: string;
  readonly value: string;
}

/** The variables to set on a container: the same for every order of the same mirrors. */
export function overridesEnv(overrides: OverrideMap | undefined): readonly EnvVariable[] {
  return [{ name: OVERRIDES_ENV, value: formatImageOverrides(overrides) }];
}
