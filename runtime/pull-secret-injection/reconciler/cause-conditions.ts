/** What is said of copies, by cause, of a profile as of a SidecarSet that says where its secrets come from. */
import { CAUSES, type Cause } from '../../rules/injection/profile-causes.ts';
import type { ConditionInput, ConditionText } from '../../rules/kubernetes/conditions.ts';
import { counted, countedOf } from '../../rules/text/counted.ts';
import type { Count } from './profile-count.ts';

/** A condition for each cause. */
export function causeConditions(count: Count): readonly ConditionInput[] {
  return CAUSES.map((cause) => causeCondition(cause, count));
}

/** What the platform must do something about. */
export function platformTrouble(count: Count): ConditionText | undefined {
  const bad = CAUSES.filter(({ whose }) => whose === 'platform')
    .map((cause) => causeCondition(cause, count))
    .filter(({ status }) => status === 'False');
  const [first] = bad;
  if (first === undefined) return undefined;
  return { reason: first.reason, message: bad.map(({ message }) => message).join('; ') };
}

/** Copies are on their way. */
export function distributing({ selected, current, blocked, behind }: Count): ConditionText | undefined {
  if (current + blocked >= selected) return undefined;
  const message = `${countedOf(current, selected, ['namespace', 'namespaces'], ['is', 'are'])} up to date; next is "${behind ?? ''}"`;
  return { reason: 'Distributing', message };
}

/** Troubles of one cause, with the number of namespaces that have each. */
function causeCondition({ type, reasons, well }: Cause, count: Count): ConditionInput {
  const found = reasons.flatMap((reason) => {
    const trouble = count.troubles.get(reason);
    return trouble === undefined ? [] : [{ reason, ...trouble }];
  });
  const [first] = found;
  if (first !== undefined) {
    const message = found
      .map((one) => `${one.message} (${one.count} of ${counted(count.selected, 'namespace')})`)
      .join('; ');
    return { type, status: 'False', reason: first.reason, message };
  }
  if (count.selected === 0) return { type, status: 'Unknown', ...NOTHING_SELECTED };
  if (type === 'Granted' && count.unasked > 0)
    return {
      type,
      status: 'Unknown',
      reason: 'SourceMissing',
      message: `No PullSecretGrant gives a source that is not there to ${count.unasked} of ${counted(count.selected, 'namespace')}; the Secret itself may grant it once it is`,
    };
  return { type, status: 'True', reason: 'AsWanted', message: well };
}

/** What cannot be told where nobody is served. */
export const NOTHING_SELECTED: ConditionText = {
  reason: 'NothingSelected',
  message: 'No namespace is selected: nothing could be checked',
};
