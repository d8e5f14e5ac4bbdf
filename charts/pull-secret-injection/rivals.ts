/**
 * Profiles of one fleet that bring different Secrets under one name to the same namespaces: the API server would refuse the later one
 * (`collision.ts`), and whoever renders is told before.
 */
import { isRecord, recordOf, scalarText } from '../../runtime/rules/record.ts';

/** A profile as it is written in a fleet. */
interface Written {
  readonly name: string;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** The later profile, by its place, the earlier one, and the name that both want. */
export interface Rivalry {
  readonly index: number;
  readonly other: string;
  readonly secret: string;
}

/**
 * Every pair. Whether two selectors meet is told as the policy tells it: when one asks for no more than the other.
 *
 * @example
 * ```ts
 * import { rivalries } from './rivals.ts';
 * import assert from 'node:assert/strict';
 *
 * const spec = (source: string) => ({ namespaceSelector: {}, secrets: [{ name: 'reg', sources: [{ namespace: 'a', name: source }] }] });
 * assert.deepEqual(rivalries([{ name: 'a', spec: spec('x') }, { name: 'b', spec: spec('y') }]), [{ index: 1, other: 'a', secret: 'reg' }]);
 * assert.deepEqual(rivalries([{ name: 'a', spec: spec('x') }, { name: 'b', spec: spec('x') }]), []);
 * ```
 */
export function rivalries(profiles: readonly Written[]): readonly Rivalry[] {
  return profiles.flatMap((later, index) =>
    profiles.slice(0, index).flatMap((earlier) => {
      if (later.spec['successor'] === earlier.name || earlier.spec['successor'] === later.name) return [];
      const [a, b] = [selectorOf(later), selectorOf(earlier)];
      if (!asksNoMore(a, b) && !asksNoMore(b, a)) return [];
      const theirs = broughtBy(earlier);
      const secret = [...broughtBy(later)].find(
        ([name, sources]) => (theirs.get(name) ?? sources) !== sources,
      );
      return secret === undefined ? [] : [{ index, other: earlier.name, secret: secret[0] }];
    }),
  );
}

/** Sources by the name of the Secret, of what a profile brings. */
function broughtBy({ spec }: Written): ReadonlyMap<string, string> {
  const secrets = spec['mode'] === 'Inject' || !Array.isArray(spec['secrets']) ? [] : spec['secrets'];
  return new Map(
    secrets.filter(isRecord).flatMap(({ name, sources }) => {
      if (!Array.isArray(sources) || sources.length === 0) return [];
      const text = sources.map(recordOf).map((one) => [one['namespace'], one['name']]);
      return [[scalarText(name), JSON.stringify(text)] as const];
    }),
  );
}

interface Selector {
  readonly labels: Readonly<Record<string, unknown>>;
  readonly expressions: readonly string[];
}

function selectorOf({ spec }: Written): Selector {
  const { matchLabels, matchExpressions } = recordOf(spec['namespaceSelector']);
  return {
    labels: recordOf(matchLabels),
    expressions: Array.isArray(matchExpressions) ? matchExpressions.map((one) => JSON.stringify(one)) : [],
  };
}

/** Every namespace that `b` selects, `a` selects too. */
function asksNoMore(a: Selector, b: Selector): boolean {
  return (
    Object.entries(a.labels).every(([key, value]) => b.labels[key] === value) &&
    a.expressions.every((one) => b.expressions.includes(one))
  );
}
