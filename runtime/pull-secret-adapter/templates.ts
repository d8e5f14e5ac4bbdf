/** Names that are made from a cluster's document. */

/** What a template may name. */
export interface TemplateValues {
  readonly id: string;
  readonly name: string;
  readonly project?: string | undefined;
  readonly region?: string | undefined;
}

/**
 * Fills `{id}`, `{name}`, `{region}` and `{project}` into a template, each value as it is.
 *
 * @example
 * ```ts
 * import { fillTemplate } from './templates.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(fillTemplate('clusters-{id}', { id: 'cls-1', name: 'one' }), 'clusters-cls-1');
 * assert.equal(fillTemplate('{name}', { id: 'cls-1', name: '{id}$&' }), '{id}$&');
 * ```
 */
export function fillTemplate(template: string, values: TemplateValues): string {
  const known: Readonly<Record<string, string>> = {
    '{id}': values.id,
    '{name}': values.name,
    '{project}': values.project ?? '',
    '{region}': values.region ?? '',
  };
  return template.replaceAll(/\{(?:id|name|project|region)\}/g, (found) => known[found] ?? found);
}

/**
 * A project as it stands in the name of a service account: of `example.com:one` the accounts end with `@one.example.com.iam...`.
 *
 * Source of the rule: Google's documentation of domain-scoped projects.
 */
export function accountDomain(project: string): string {
  const [domain = '', name] = project.split(':');
  return name === undefined ? project : `${name}.${domain}`;
}
