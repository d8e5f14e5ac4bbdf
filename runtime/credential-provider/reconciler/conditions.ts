/** The conditions of a CRIOCredentialProviderConfig, with the reasons and texts that its readers know. */

import type { ConditionInput } from '../../core/kubernetes/conditions.ts';
import type { MatchImageVerdict } from '../merge.ts';

export type ConditionType = 'Validated' | 'MachineConfigRendered';

/** There are no nodes of the Machine Config Operator. Only Pullwright uses this reason. */
export const NO_POOL = 'NoMachineConfigPool';

const SUCCESS: Readonly<Record<ConditionType, string>> = {
  Validated: 'Succeeded',
  MachineConfigRendered: 'MachineConfigRenderingSucceeded',
};

export interface ConditionFacts {
  /** @default {'MachineConfigRendered'} */
  readonly type?: ConditionType;
  /** Absent: the reason of success, or of a failed rendering when there is an error. */
  readonly reason?: string;
  readonly error?: string;
  readonly message?: string;
}

/**
 * One condition: true unless there is an error or a reason other than success.
 */
export function conditionOf({
  type = 'MachineConfigRendered',
  reason,
  error,
  message,
}: ConditionFacts): ConditionInput {
  const isWell = error === undefined && (reason === undefined || reason === SUCCESS[type]);
  return {
    type,
    status: isWell ? 'True' : 'False',
    reason: reason ?? (error === undefined ? SUCCESS[type] : 'MachineConfigRenderingFailed'),
    message: message ?? (error === undefined ? 'Success' : `Error: ${error}`),
  };
}

/**
 * `Validated`: names ignored entries. Conflicts are a configuration that is applied in part; when nothing can be
 * applied because no image can match any entry, validation has failed.
 *
 * @param unserved entries that are good and that no pool is there for
 */
export function validated(verdicts: readonly MatchImageVerdict[], unserved = 0): ConditionInput {
  const named = (verdict: MatchImageVerdict['verdict']): readonly string[] =>
    verdicts
      .filter((one) => one.verdict === verdict)
      .map(({ pattern }) => pattern)
      .sort();
  const [conflicts, unusable] = [named('Conflict'), named('Unusable')];
  const said = [
    ...(conflicts.length === 0
      ? []
      : [
          `CRIOCredentialProviderConfig has one or multiple entries that overlap with the original credential provider config. Skip rendering entries: [${conflicts.join(' ')}].`,
        ]),
    ...verdicts
      .filter(({ verdict }) => verdict === 'Unusable')
      .map(({ pattern, message }) => `Invalid "${pattern}": ${message}.`),
  ];
  if (said.length === 0) return conditionOf({ type: 'Validated' });
  const isNothingLeft = unusable.length > 0 && named('Rendered').length + unserved === 0;
  return conditionOf({
    type: 'Validated',
    reason: isNothingLeft ? 'ValidationFailed' : 'ConfigurationPartiallyApplied',
    message: said.join(' '),
  });
}
