/**
 * Label selectors as the API server reads them: `matchLabels` and `matchExpressions`, all of which must hold.
 *
 * Source of the rule: metav1.LabelSelector and k8s.io/apimachinery labels (a `NotIn` or `DoesNotExist` holds where the key
 * is missing; `In` and `NotIn` want values, `Exists` and `DoesNotExist` want none).
 */
import { isRecord } from '../record.ts';

export type LabelOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';

/** Set by the API server on every namespace; no other value is accepted. */
export const NAMESPACE_NAME_LABEL = 'kubernetes.io/metadata.name';

/** One requirement of a selector. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  readonly values?: readonly string[];
}

export type Labels = Readonly<Record<string, string>>;

/** A selector that was read: its requirements (none: everything), or why it is none. */
export type ReadSelector =
  | { readonly ok: true; readonly requirements: readonly LabelRequirement[] }
  | { readonly ok: false; readonly problem: string };

const OPERATORS: readonly string[] = ['In', 'NotIn', 'Exists', 'DoesNotExist'];

/**
 * Reads a selector from raw JSON. `matchLabels` come first, sorted by key, as `In` with one value. `strict` (default) also
 * refuses what the API server refuses: wrong keys and values, `In` without values, `Exists` with some. Without it only an
 * unknown operator and a wrong shape are refused, as Kruise does for sets that are stored already.
 */
export function readSelector(input: unknown, options: { readonly strict?: boolean } = {}): ReadSelector {
  if (!isRecord(input)) return { ok: false, problem: 'selector is not an object' };
  const read = [...readLabels(input['matchLabels']), ...readExpressions(input['matchExpressions'])];
  const requirements = read.filter((one) => typeof one !== 'string');
  const problems = read.filter((one) => typeof one === 'string');
  if (options.strict !== false)
    problems.push(...requirements.map(strictProblem).filter((one) => one !== undefined));
  const [problem] = problems;
  return problem === undefined ? { ok: true, requirements } : { ok: false, problem };
}

/** A requirement, or why it is none. */
type ReadRequirement = LabelRequirement | string;

function readLabels(labels: unknown): readonly ReadRequirement[] {
  if (labels === undefined || labels === null) return [];
  if (!isRecord(labels)) return ['matchLabels is not an object'];
  return Object.keys(labels)
    .sort()
    .map((key) => {
      const value = labels[key];
      if (typeof value !== 'string') return `matchLabels "${key}" is not a text`;
      return { key, operator: 'In', values: [value] };
    });
}

function readExpressions(expressions: unknown): readonly ReadRequirement[] {
  if (expressions === undefined || expressions === null) return [];
  if (!Array.isArray(expressions)) return ['matchExpressions is not a list'];
  return (expressions as readonly unknown[]).map(readRequirement);
}

/** Whether `labels` meet every requirement. No requirement: yes. */
export function selects(requirements: readonly LabelRequirement[], labels: Labels): boolean {
  return requirements.every((requirement) => meets(requirement, labels));
}

/** The label keys that decide. */
export function selectorKeys(requirements: readonly LabelRequirement[]): readonly string[] {
  return [...new Set(requirements.map((requirement) => requirement.key))].sort();
}

function meets({ key, operator, values = [] }: LabelRequirement, labels: Labels): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return operator satisfies never;
  }
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
    return `values of "${key}" are not a list of texts`;
  }
  return { key, operator: operator as LabelOperator, values: values as readonly string[] };
}

const NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;

function strictProblem({ key, operator, values = [] }: LabelRequirement): string | undefined {
  if (!isLabelKey(key)) return `"${key}" is not a label key`;
  const wantsValues = operator === 'In' || operator === 'NotIn';
  if (wantsValues && values.length === 0) return `${operator} of "${key}" has no values`;
  if (!wantsValues && values.length > 0) return `${operator} of "${key}" must not have values`;
  const wrong = values.find((value) => !isLabelValue(value));
  return wrong === undefined ? undefined : `"${wrong}" of "${key}" is not a label value`;
}

/** As the API server accepts it; the empty text is one. */
export function isLabelValue(value: string): boolean {
  return value === '' || NAME.test(value);
}

/** `[prefix/]name` as the API server accepts it. */
export function isLabelKey(key: string): boolean {
  const [first = '', second, ...rest] = key.split('/');
  if (rest.length > 0) return false;
  if (second === undefined) return NAME.test(first);
  return first.length <= 253 && PREFIX.test(first) && NAME.test(second);
}
