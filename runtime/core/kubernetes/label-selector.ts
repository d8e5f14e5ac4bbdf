/**
 * Label selectors as the API server reads them: all of `matchLabels` and `matchExpressions` must match.
 *
 * Source of the rule: metav1.LabelSelector and k8s.io/apimachinery labels (`NotIn` and `DoesNotExist` match if the key is
 * missing; `In` and `NotIn` require values, `Exists` and `DoesNotExist` must have none).
 */
import { isRecord } from '../record.ts';
import { isObjectName } from './object.ts';

/** Whether a label meets an operator; a missing label is undefined. */
const MEETS = {
  In: (value, values) => value !== undefined && values.includes(value),
  NotIn: (value, values) => value === undefined || !values.includes(value),
  Exists: (value) => value !== undefined,
  DoesNotExist: (value) => value === undefined,
} satisfies Readonly<Record<string, (value: string | undefined, values: readonly string[]) => boolean>>;

export type LabelOperator = keyof typeof MEETS;

/** Set by the API server on every namespace; it accepts no other value. */
export const NAMESPACE_NAME_LABEL = 'kubernetes.io/metadata.name';

/** One requirement of a selector. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  readonly values?: readonly string[];
}

export type Labels = Readonly<Record<string, string>>;

/** A parsed selector: its requirements (none selects everything), or why it is invalid. */
export type ReadSelector =
  | { readonly ok: true; readonly requirements: readonly LabelRequirement[] }
  | { readonly ok: false; readonly problem: string };

const OPERATORS = Object.keys(MEETS);

/**
 * Parses a selector from raw JSON. `matchLabels` come first, sorted by key, as `In` with one value. `strict` (default) also
 * rejects what the API server rejects: invalid keys and values, `In` without values, `Exists` with values. Without it, only an
 * unknown operator and a wrong shape are rejected, as Kruise does for stored sets.
 */
export function readSelector(input: unknown, options: { readonly strict?: boolean } = {}): ReadSelector {
  if (!isRecord(input)) return { ok: false, problem: 'selector must be an object' };
  const read = [
    ...readLabels(input['matchLabels'] ?? {}),
    ...readExpressions(input['matchExpressions'] ?? []),
  ];
  const requirements = read.filter((one) => typeof one !== 'string');
  const problems = read.filter((one) => typeof one === 'string');
  if (options.strict !== false)
    problems.push(...requirements.map(strictProblem).filter((one) => one !== undefined));
  const [problem] = problems;
  return problem === undefined ? { ok: true, requirements } : { ok: false, problem };
}

/** A requirement, or why it is invalid. */
type ReadRequirement = LabelRequirement | string;

function readLabels(labels: unknown): readonly ReadRequirement[] {
  if (!isRecord(labels)) return ['matchLabels must be an object'];
  return Object.keys(labels)
    .sort()
    .map((key) => {
      const value = labels[key];
      if (typeof value !== 'string') return `matchLabels "${key}" must be a string`;
      return { key, operator: 'In', values: [value] };
    });
}

function readExpressions(expressions: unknown): readonly ReadRequirement[] {
  if (!Array.isArray(expressions)) return ['matchExpressions must be a list'];
  return (expressions as readonly unknown[]).map(readRequirement);
}

/** Whether `labels` match every requirement; true without requirements. */
export function selects(requirements: readonly LabelRequirement[], labels: Labels): boolean {
  return requirements.every(({ key, operator, values = [] }) =>
    MEETS[operator](Object.hasOwn(labels, key) ? labels[key] : undefined, values),
  );
}

/** The label keys of the requirements, sorted. */
export function selectorKeys(requirements: readonly LabelRequirement[]): readonly string[] {
  return [...new Set(requirements.map((requirement) => requirement.key))].sort();
}

function readRequirement(input: unknown): ReadRequirement {
  if (!isRecord(input) || typeof input['key'] !== 'string')
    return 'matchExpressions has an entry without key';
  const { key, operator } = input;
  if (typeof operator !== 'string' || !OPERATORS.includes(operator)) {
    return `"${typeof operator === 'string' ? operator : JSON.stringify(operator)}" is not a valid label selector operator: expected ${OPERATORS.join(', ')}`;
  }
  const values: unknown = input['values'] ?? [];
  if (!Array.isArray(values) || values.some((value) => typeof value !== 'string')) {
    return `values of "${key}" must be a list of strings`;
  }
  return { key, operator: operator as LabelOperator, values: values as readonly string[] };
}

const NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

function strictProblem({ key, operator, values = [] }: LabelRequirement): string | undefined {
  if (!isLabelKey(key)) return `"${key}" is not a label key`;
  const wantsValues = operator === 'In' || operator === 'NotIn';
  if (wantsValues && values.length === 0) return `${operator} of "${key}" must have values`;
  if (!wantsValues && values.length > 0) return `${operator} of "${key}" must not have values`;
  const wrong = values.find((value) => !isLabelValue(value));
  return wrong === undefined ? undefined : `"${wrong}" of "${key}" is not a label value`;
}

/** Whether the API server accepts it; an empty value is valid. */
export function isLabelValue(value: string): boolean {
  return value === '' || NAME.test(value);
}

/** `[prefix/]name` as the API server accepts it. */
export function isLabelKey(key: string): boolean {
  const [first = '', second, ...rest] = key.split('/');
  if (rest.length > 0) return false;
  if (second === undefined) return NAME.test(first);
  return isObjectName(first) && NAME.test(second);
}
