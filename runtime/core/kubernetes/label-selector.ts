/**
 * Label selectors as the API server reads them: `matchLabels` and `matchExpressions`, all of which must hold.
 *
 * Source of the rule: metav1.LabelSelector and k8s.io/apimachinery labels (a `NotIn` or `DoesNotExist` holds where the key
 * is missing; `In` and `NotIn` want values, `Exists` and `DoesNotExist` want none).
 */
import { isRecord } from '../record.ts';

export type LabelOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';

/** Set by the API server on every namespace; nobody can set it to another value. */
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

/** Reads the text form that `kubectl -l` takes: `a=b,c!=d,e in (f,g),h,!i`. */
export function parseSelectorText(text: string): ReadSelector {
  const requirements: LabelRequirement[] = [];
  for (const term of termsOf(text)) {
    const requirement = requirementOf(term);
    if (requirement === undefined) return { ok: false, problem: `"${term}" is not a label selector term` };
    requirements.push(requirement);
  }
  if (requirements.length === 0) return { ok: false, problem: 'the selector is empty' };
  const problem = requirements.map(strictProblem).find((wrong) => wrong !== undefined);
  return problem === undefined ? { ok: true, requirements } : { ok: false, problem };
}

/** Between commas that do not stand in parentheses. Looks at each character once: tenants write these texts. */
function termsOf(text: string): readonly string[] {
  const terms: string[] = [];
  let from = 0;
  let isInside = false;
  for (let at = 0; at <= text.length; at += 1) {
    const char = text[at];
    if (char === '(') isInside = true;
    else if (char === ')') isInside = false;
    else if (char === undefined || (char === ',' && !isInside)) {
      terms.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return terms.filter((term) => term !== '');
}

const WORD = /^\S+$/;
const SET = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/;

function requirementOf(term: string): LabelRequirement | undefined {
  if (term.startsWith('!') && !term.startsWith('!=')) {
    const key = term.slice(1).trim();
    return WORD.test(key) ? { key, operator: 'DoesNotExist' } : undefined;
  }
  const [, setKey, set, values = ''] = SET.exec(term) ?? [];
  if (setKey !== undefined) {
    const operator = set === 'in' ? 'In' : 'NotIn';
    return { key: setKey, operator, values: values.split(',').map((value) => value.trim()) };
  }
  return equality(term);
}

/** `a=b`, `a==b`, `a!=b`, or a key alone. */
function equality(term: string): LabelRequirement | undefined {
  const at = term.indexOf('=', 1);
  if (at < 0) return WORD.test(term) ? { key: term, operator: 'Exists' } : undefined;
  const isNot = term[at - 1] === '!';
  const key = term.slice(0, isNot ? at - 1 : at).trim();
  const value = term.slice(term[at + 1] === '=' ? at + 2 : at + 1).trim();
  if (!WORD.test(key) || /\s/.test(value)) return undefined;
  return { key, operator: isNot ? 'NotIn' : 'In', values: [value] };
}
