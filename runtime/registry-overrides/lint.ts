/**
 * Problems of a group of mirror sets: everything that {@link collectMirrors} reports, and conflicts between rules. Errors break
 * pulls or have no effect; warnings are surprising behaviour.
 */
import type { KubeObject } from '../core/kubernetes/object.ts';
import {
  compileMirrors,
  findRule,
  type MirrorIndex,
  type MirrorRule,
  originText,
  type RuleOrigin,
} from '../core/mirrors/resolve.ts';
import { distinctBy } from '../core/record.ts';
import { schemaFaults, schemaProblem } from './machine-config/admission.ts';
import { scopesAround } from './machine-config/input.ts';
import { renderNodeFiles } from './machine-config/render.ts';
import { collectMirrors, type MirrorProblem, problem, type SetEntry } from './mirror-sets/collect.ts';
import { faultProblems } from './planes.ts';

export function lintMirrors(objects: readonly KubeObject[]): readonly MirrorProblem[] {
  const { entries, rules, problems } = collectMirrors(objects);
  const index = compileMirrors(rules);
  const refused = schemaFaults(objects).map(schemaProblem);
  const told = new Set(refused.map(({ code, origin }) => `${code} ${origin.kind}/${origin.name}`));
  return toldOnce([
    ...refused,
    ...faultProblems(renderNodeFiles(objects)).filter(
      ({ code, origin }) => !told.has(`${code} ${origin.kind}/${origin.name}`),
    ),
    ...problems,
    ...entryProblems(entries),
    ...rules.flatMap((rule) => ruleProblems(rule, index)),
  ]);
}

/** Reports each fault once, by the first of API server, operator and runtime that rejects it. */
function toldOnce(problems: readonly MirrorProblem[]): readonly MirrorProblem[] {
  return distinctBy(problems, ({ code, origin }) => {
    const place = code === 'SourceIsMirror' ? origin.path.replace(/\.mirrors.*$/, '') : origin.path;
    return [code, origin.kind, origin.name, place].join(' ');
  });
}

function entryProblems(entries: readonly SetEntry[]): readonly MirrorProblem[] {
  const seen = new Map<string, SetEntry>();
  return entries.flatMap((entry) => {
    // The schemas of the other kinds reject duplicates.
    const hasSchema = entry.origin.kind !== 'ImageContentSourcePolicy';
    const twice = hasSchema ? undefined : repeated(entry.mirrors);
    const key = JSON.stringify([entry.source, entry.pullFrom, entry.mirrors]);
    const first = seen.get(key);
    if (first === undefined) seen.set(key, entry);
    const told = (code: string, text: string): MirrorProblem => problem(code, entry.origin, text, 'warning');
    return [
      twice === undefined
        ? []
        : told(
            'DuplicateMirror',
            `lists the mirror "${twice}" twice for "${entry.source}": nodes then order its mirrors by name`,
          ),
      first === undefined
        ? []
        : told('DuplicateEntry', `repeats ${describe(first.origin)} for "${entry.source}"`),
    ].flat();
  });
}

function repeated(mirrors: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return mirrors.find((mirror) => seen.has(mirror) || !seen.add(mirror));
}

function ruleProblems(rule: MirrorRule, index: MirrorIndex): readonly MirrorProblem[] {
  const origin = rule.origins?.[0] ?? { kind: 'rule', name: rule.prefix, path: '' };
  return [
    ...reachProblems(rule, index, origin),
    ...rule.mirrors.flatMap((mirror) =>
      mirrorProblems(rule, mirror.location, index, mirror.origin ?? origin),
    ),
  ];
}

function reachProblems(rule: MirrorRule, index: MirrorIndex, origin: RuleOrigin): readonly MirrorProblem[] {
  if (rule.prefix.startsWith('*.')) {
    const text = `has the wildcard source "${rule.prefix}": nodes apply it, but OPENSHIFT_IMG_OVERRIDES of the control plane does not support wildcards`;
    return [problem('WildcardNodesOnly', origin, text, 'warning')];
  }
  const winner = findRule(index, rule.prefix)?.rule;
  if (winner !== undefined && winner !== rule) {
    const text = `is never used: "${winner.prefix}" is as long as "${rule.prefix}", and a wildcard takes precedence`;
    return [problem('Unreachable', origin, text)];
  }
  const wider = widerRule(rule.prefix, index);
  if (wider === undefined) return [];
  const text = `overrides the wider source "${wider.prefix}" (${describe(wider.origins?.[0])}) for images of "${rule.prefix}": the mirrors of the wider source are not tried for them`;
  return [problem('Overlap', origin, text, 'warning')];
}

/** The rule that would apply without one for `source`. */
function widerRule(source: string, index: MirrorIndex): MirrorRule | undefined {
  const slash = source.lastIndexOf('/');
  if (slash !== -1) return findRule(index, source.slice(0, slash))?.rule;
  const [, ...wildcards] = scopesAround(source);
  return wildcards.map((scope) => index.bySource.get(scope)).find((rule) => rule !== undefined);
}

function mirrorProblems(rule: MirrorRule, location: string, index: MirrorIndex, origin: RuleOrigin) {
  const found: MirrorProblem[] = [];
  const parts = rule.prefix.split('/').length - 1;
  if (parts > 0 && !location.includes('/')) {
    const text = `maps the path of "${rule.prefix}" to the bare host "${location}": an image named exactly "${rule.prefix}" then has no repository, and the runtime rejects it, at the source too; write "${location}/<repository>"`;
    // One part may be a team, whose images have another part; two are a repository.
    found.push(problem('MirrorWithoutPath', origin, text, parts > 1 ? 'error' : 'warning'));
  }
  const other = findRule(index, location)?.rule;
  if (other === undefined || other === rule) return found;
  const back = other.mirrors.some((mirror) => findRule(index, mirror.location)?.rule === rule);
  if (other.blocked) {
    const text = `names the mirror "${location}", which "${other.prefix}" blocks: it is never tried`;
    found.push(problem('MirrorBlocked', origin, text));
  } else if (back) {
    const text = `names the mirror "${location}", whose rule "${other.prefix}" names "${rule.prefix}" again: mirrors are not mirrored, so neither is applied to the other`;
    found.push(problem('Loop', origin, text, 'warning'));
  } else {
    const text = `names the mirror "${location}", which has mirrors of its own ("${other.prefix}"): they are not tried for it`;
    found.push(problem('MirrorIsSource', origin, text, 'warning'));
  }
  return found;
}

function describe(origin: RuleOrigin | undefined): string {
  return origin === undefined ? 'another rule' : originText(origin);
}
