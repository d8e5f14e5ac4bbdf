/** The mirror sets of a cluster as its nodes follow them: in the operator's order, with everything that it refuses. */
import type { MirrorProblem } from '../mirrors/collect.ts';
import type { MirrorRule, RuleOrigin } from '../mirrors/mirrors.ts';
import type { NodeMirrors } from '../node-registries/node-mirrors.ts';
import type { ReportMirrorRule, ReportMirrors, ReportRefusal } from './types.ts';

/**
 * @param place names the object and field of an origin, for a person
 * @example
 * ```ts
 * import { nodeMirrors } from '../node-registries/node-mirrors.ts';
 * import { reportMirrors } from './mirror-sets.ts';
 * import assert from 'node:assert/strict';
 *
 * const nodes = nodeMirrors([{
 *   apiVersion: 'config.openshift.io/v1', kind: 'ImageTagMirrorSet', metadata: { name: 'team' },
 *   spec: { imageTagMirrors: [{ source: 'quay.io/team', mirrors: ['mirror.example.com/team'] }] },
 * }], () => ({}));
 * const { rules } = reportMirrors(nodes, ({ kind, name }) => `${kind}/${name}`);
 * assert.deepEqual(rules[0]?.mirrors, [{ location: 'mirror.example.com/team', pullFrom: 'tag-only', from: 'ImageTagMirrorSet/team' }]);
 * ```
 */
export function reportMirrors(nodes: NodeMirrors, place: (origin: RuleOrigin) => string): ReportMirrors {
  const { rendering, state, summary, rules, problems } = nodes;
  const shown = state === 'rendered' && !rendering.refused ? rendering.rules : rules;
  return {
    state,
    summary,
    rules: shown.map((rule) => ruleOf(rule, place)),
    refusals: problems.map((problem) => refusalOf(problem, place)),
  };
}

function ruleOf(
  { prefix, blocked, origins = [], mirrors }: MirrorRule,
  place: (origin: RuleOrigin) => string,
): ReportMirrorRule {
  return {
    source: prefix,
    blocked,
    from: [...new Set(origins.map(({ kind, name, path }) => place({ kind, name, path })))],
    mirrors: mirrors.map(({ location, pullFrom, origin }) => ({
      location,
      pullFrom,
      ...(origin === undefined ? {} : { from: place(origin) }),
    })),
  };
}

function refusalOf(
  { severity, code, origin, message }: MirrorProblem,
  place: (origin: RuleOrigin) => string,
): ReportRefusal {
  return { severity, code, object: place(origin), message };
}
