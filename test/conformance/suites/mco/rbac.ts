/** The roles as shipped, and what a namespace must grant for the provider to read its secrets. */
import { namespaceAccess, nodeAccess } from '../../../../runtime/credential-provider/access.ts';
import type { ConformanceSuite } from '../../suite.ts';

type Part = 'clusterRole' | 'clusterRoleBinding' | 'namespaceRoleNeeded';

export const suite: ConformanceSuite<Part> = {
  cases(document) {
    const { source: _, ...parts } = document as Record<string, unknown>;
    return Object.entries(parts).map(([part, expected]) => ({ name: part, input: part as Part, expected }));
  },
  answer(part) {
    const [clusterRole, binding] = nodeAccess({ readServiceAccounts: true });
    if (part === 'clusterRole') return { name: clusterRole?.metadata.name, rules: clusterRole?.['rules'] };
    if (part === 'clusterRoleBinding')
      return { name: binding?.metadata.name, subjects: binding?.['subjects'] };
    if (part === 'namespaceRoleNeeded') return namespaceAccess({ namespace: 'a' })[0]?.['rules'];
    throw new Error(`unknown part "${String(part)}"`);
  },
  accepts: (actual, expected, part) =>
    part === 'namespaceRoleNeeded' ? grants(actual, expected) : sameText(actual, expected),
  // Other lists of verbs than ours are recorded too.
  loosens: ['recorded'],
  mutation: {
    file: 'runtime/credential-provider/access.ts',
    replace: "may(['get', 'list'], '', ['serviceaccounts'])",
    by: "may(['get'], '', ['serviceaccounts'])",
  },
};

function sameText(actual: unknown, expected: unknown): boolean {
  return JSON.stringify(sorted(actual)) === JSON.stringify(sorted(expected));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, field]) => [key, sorted(field)]),
  );
}

interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** Lists of verbs, and how the provider ended with them. */
  readonly recorded?: Readonly<Record<string, string>>;
}

/** A role of ours may grant more than the needed rule, but must grant that. */
function grants(actual: unknown, needed: unknown): boolean {
  const { resources, verbs, recorded } = needed as Rule;
  return (actual as readonly Rule[]).some(
    (rule) =>
      resources.every((one) => rule.resources.includes(one)) &&
      verbs.every((one) => rule.verbs.includes(one)) &&
      (recorded?.[rule.verbs.join()] ?? 'exit 0') === 'exit 0',
  );
}
