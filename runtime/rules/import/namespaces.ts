/** Which namespaces a list of patterns means, as a selector of namespaces and as a grant. */
import type { KubeObject } from '../kubernetes/object.ts';

const NAME_LABEL = 'kubernetes.io/metadata.name';

/** Namespaces to bring a Secret to. */
export interface NamespaceTarget {
  readonly selector: object;
  /** For the grant: names, or `*`. */
  readonly grant: string;
  /** Why it is not quite what the patterns mean; absent when it is. */
  readonly changed?: string;
}

/** Names of the namespaces in a dump. */
export function namespaceNames(objects: readonly KubeObject[]): readonly string[] {
  return objects.filter(({ kind }) => kind === 'Namespace').map(({ metadata }) => metadata.name);
}

/**
 * Reads lists of names and regular expressions, all of which must match a namespace as a whole; an empty list matches all.
 * `from` is left out: the Secret is there already.
 *
 * @returns undefined when nothing is meant that could be found
 * @example
 * ```ts
 * import { namespacesMatching } from './namespaces.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(namespacesMatching(['a, b'], { from: 'hub', known: [] })?.grant, 'a, b');
 * assert.equal(namespacesMatching(['', 'team-.*'], { from: 'hub', known: ['team-a', 'web'] })?.grant, 'team-a');
 * assert.equal(namespacesMatching(['.*'], { from: 'hub', known: [] })?.grant, '*');
 * ```
 */
export function namespacesMatching(
  lists: readonly string[],
  { from, known }: { readonly from: string; readonly known: readonly string[] },
): NamespaceTarget | undefined {
  const restricting = lists
    .map(patternsOf)
    .filter((patterns) => !patterns.some(isAll) && patterns.length > 0);
  if (restricting.length === 0) {
    const expression = { key: NAME_LABEL, operator: 'NotIn', values: [from] };
    return { selector: { matchExpressions: [expression] }, grant: '*' };
  }
  const plain = restricting.flat().filter(isName);
  const all = restricting.flat();
  const candidates = [...new Set([...plain, ...known])].filter((name) => name !== from);
  const names = candidates.filter((name) =>
    restricting.every((patterns) => patterns.some((pattern) => matches(pattern, name))),
  );
  if (names.length === 0) return undefined;
  if (plain.length === all.length) return byName(names);
  const slow = all.filter((pattern) => !isName(pattern) && !isQuick(pattern));
  const changed = [
    `patterns mean the namespaces of today (${names.join(', ')}): label namespaces and select by label, so that new ones are served too`,
    ...slow.map(
      (pattern) => `"${pattern.slice(0, 60)}" is too complex to be tried here: add its namespaces yourself`,
    ),
  ];
  return { ...byName(names), changed: changed.join('; ') };
}

/** Exactly these. */
export function byName(names: readonly string[]): NamespaceTarget {
  const expression = { key: NAME_LABEL, operator: 'In', values: names };
  return { selector: { matchExpressions: [expression] }, grant: names.join(', ') };
}

function patternsOf(list: string): readonly string[] {
  return list
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function isAll(pattern: string): boolean {
  return ['.*', '^.*$', '*'].includes(pattern);
}

function isName(pattern: string): boolean {
  return /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(pattern);
}

/**
 * The other tool runs patterns in Go, in linear time; here a repeated group can take time by powers of two. Without repeated
 * groups, look-around and back references, and with at most three repetitions, 63 characters of a name take no time at all.
 */
function isQuick(pattern: string): boolean {
  const repetitions = pattern.split(/[*+{]/).length - 1;
  return pattern.length <= 512 && repetitions <= 3 && !/\)[*+?{]|\(\?[=!<]|\\[1-9k]/.test(pattern);
}

/** A pattern that is no regular expression, or that could take for ever, matches nothing. */
function matches(pattern: string, name: string): boolean {
  if (isName(pattern)) return pattern === name;
  if (!isQuick(pattern) || name.length > 63) return false;
  try {
    return new RegExp(`^(?:${pattern})$`).test(name);
  } catch {
    return false;
  }
}
