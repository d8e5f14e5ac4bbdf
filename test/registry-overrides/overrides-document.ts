/** Reads the document of a hosted cluster's mirrors, as a consumer would. */

import type { MirrorRule } from '../../runtime/core/mirrors/resolve.ts';
import type { DocumentRule, OverridesDocument } from '../../runtime/registry-overrides/reconciler/report.ts';

/** The rules of a document's text; undefined for text that is no document of this version. */
export function parseOverridesDocument(text: string): readonly MirrorRule[] | undefined {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { version, rules } = (document ?? {}) as Partial<OverridesDocument>;
  if (version !== 1 || !Array.isArray(rules) || !rules.every(isRule)) return undefined;
  return rules.map((rule) => ({
    prefix: rule.source,
    location: rule.source.startsWith('*.') ? '' : rule.source,
    blocked: rule.mirrorSourcePolicy === 'NeverContactSource',
    insecure: false,
    mirrors: rule.mirrors.map(({ location, pullFrom }) => ({ location, pullFrom })),
  }));
}

function isRule(value: unknown): value is DocumentRule {
  const { source, mirrors, mirrorSourcePolicy } = (value ?? {}) as Partial<
    Record<keyof DocumentRule, unknown>
  >;
  const policies: readonly unknown[] = ['AllowContactingSource', 'NeverContactSource'];
  return (
    typeof source === 'string' &&
    policies.includes(mirrorSourcePolicy) &&
    Array.isArray(mirrors) &&
    mirrors.every((mirror: unknown) => {
      const { location, pullFrom } = (mirror ?? {}) as Readonly<Record<string, unknown>>;
      const kinds: readonly unknown[] = ['all', 'digest-only', 'tag-only'];
      return typeof location === 'string' && kinds.includes(pullFrom);
    })
  );
}
