/**
 * The consent of a source Secret: its annotation `pullwright.dev/grant-namespaces` says which namespaces may get a copy.
 * No grant, no copy.
 *
 * Clauses are separated by `;` or line breaks. A clause is a list of namespace names and globs (`team-a, team-b-*`), or
 * `selector:` with a label selector as for `kubectl -l`. A selector may look only at label keys that the operator of the
 * cluster has called trusted: a tenant who can label its own namespace must not be able to help itself.
 */
import {
  type LabelRequirement,
  type Labels,
  NAMESPACE_NAME_LABEL,
  parseSelectorText,
  selectorKeys,
  selects,
} from '../kubernetes/label-selector.ts';

export const GRANT_ANNOTATION = 'pullwright.dev/grant-namespaces';

/** Label keys that selectors of grants may use unless configured otherwise: the API server owns this one. */
export const DEFAULT_TRUSTED_KEYS: readonly string[] = [NAMESPACE_NAME_LABEL];

/** A grant, read. */
export interface Grant {
  /** Names and globs. */
  readonly patterns: readonly string[];
  readonly selectors: readonly (readonly LabelRequirement[])[];
  /** Selectors that grant nothing, because they look at a label that is not trusted. */
  readonly mistrusted: readonly (readonly LabelRequirement[])[];
  /** Clauses that grant nothing, and why. */
  readonly problems: readonly string[];
}

/**
 * Reads the annotation. Total: a clause that cannot be read grants nothing and is reported.
 *
 * @example
 * ```ts
 * import { grants, readGrant } from './profile-grant.ts';
 * import assert from 'node:assert/strict';
 *
 * const grant = readGrant('team-a, dev-*; selector: tier=gold');
 * assert.equal(grants(grant, 'dev-7', {}), true);
 * assert.equal(grants(grant, 'shop', { tier: 'gold' }), false);
 * assert.match(grant.problems[0] ?? '', /label "tier", which is not trusted/);
 * ```
 */
export function readGrant(text: string, trustedKeys: readonly string[] = DEFAULT_TRUSTED_KEYS): Grant {
  const patterns: string[] = [];
  const selectors: (readonly LabelRequirement[])[] = [];
  const mistrusted: (readonly LabelRequirement[])[] = [];
  const problems: string[] = [];
  for (const clause of text.split(/[;\n]/).map((part) => part.trim())) {
    if (clause.startsWith('selector:')) readSelectorClause(clause.slice(9).trim());
    else for (const name of clause.split(/[,\s]+/)) readNameClause(name);
  }
  return { patterns, selectors, mistrusted, problems };

  function readSelectorClause(clause: string): void {
    const read = parseSelectorText(clause);
    if (!read.ok) return void problems.push(`clause "selector: ${clause}": ${read.problem}`);
    const strange = selectorKeys(read.requirements).find((key) => !trustedKeys.includes(key));
    if (strange === undefined) return void selectors.push(read.requirements);
    mistrusted.push(read.requirements);
    problems.push(`clause "selector: ${clause}" uses the label "${strange}", which is not trusted`);
  }

  function readNameClause(name: string): void {
    if (name === '') return;
    if (/^[a-z0-9*?-]{1,63}$/.test(name)) patterns.push(name);
    else problems.push(`"${name}" is neither the name of a namespace nor a glob`);
  }
}

/** Whether the namespace may have a copy. */
export function grants(grant: Grant, namespace: string, labels: Labels): boolean {
  if (grant.patterns.some((pattern) => matchesGlob(pattern, namespace))) return true;
  // The name counts as the label that the API server sets, whatever a manifest in a folder says.
  const seen = { ...labels, [NAMESPACE_NAME_LABEL]: namespace };
  return grant.selectors.some((requirements) => selects(requirements, seen));
}

/** `*` is any text, `?` any one character. Steps back to the last star only, so the time is bounded by the product of lengths. */
function matchesGlob(glob: string, name: string): boolean {
  let at = 0;
  let star = -1;
  let resume = 0;
  for (let index = 0; index < name.length; ) {
    if (glob[at] === '*') {
      star = at;
      at += 1;
      resume = index;
    } else if (at < glob.length && (glob[at] === '?' || glob[at] === name[index])) {
      at += 1;
      index += 1;
    } else if (star >= 0) {
      resume += 1;
      index = resume;
      at = star + 1;
    } else return false;
  }
  return /^\**$/.test(glob.slice(at));
}
