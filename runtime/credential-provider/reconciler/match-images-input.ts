/**
 * `spec.matchImages` as it is found, judged by the definition of the kind. A cluster never holds anything else; a folder may, and
 * what an API server would refuse must show before it is committed.
 *
 * Source of the rule: the schema of CRIOCredentialProviderConfig, charts/credential-provider/crd.ts.
 */
import { isMatchImage } from '../../../charts/credential-provider/crd.ts';
import type { MatchImageVerdict } from '../../rules/credential-provider/merge.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';

const MAX_ENTRIES = 50;

export interface MatchImagesInput {
  /** Entries that the definition takes, once each. */
  readonly patterns: readonly string[];
  /** What it refuses, by entry. */
  readonly faults: readonly MatchImageVerdict[];
}

/**
 * Reads the entries. Total: takes whatever is there.
 *
 * @example
 * ```ts
 * import { readMatchImages } from './match-images-input.ts';
 * import assert from 'node:assert/strict';
 *
 * const object = { apiVersion: 'config.openshift.io/v1', kind: 'CRIOCredentialProviderConfig', metadata: { name: 'cluster' } };
 * const { patterns, faults } = readMatchImages({ ...object, spec: { matchImages: ['docker.io', 7] } });
 * assert.deepEqual(patterns, ['docker.io']);
 * assert.equal(faults[0]?.message, 'it is a number, expected a text such as docker.io');
 * ```
 */
export function readMatchImages({ spec }: KubeObject): MatchImagesInput {
  const list = (spec as { readonly matchImages?: unknown } | null | undefined)?.matchImages;
  if (list === undefined || list === null) return { patterns: [], faults: [] };
  if (!Array.isArray(list))
    return {
      patterns: [],
      faults: [fault('spec.matchImages', `it is ${kindOf(list)}, expected a list of patterns`)],
    };
  const patterns = new Set<string>();
  const faults: MatchImageVerdict[] = [];
  for (const [at, entry] of (list as readonly unknown[]).entries()) {
    const place = `spec.matchImages[${at}]`;
    if (typeof entry !== 'string')
      faults.push(fault(place, `it is ${kindOf(entry)}, expected a text such as docker.io`));
    else if (patterns.has(entry)) faults.push(fault(place, `"${entry}" is there before: remove one of them`));
    else if (!isMatchImage(entry))
      faults.push(
        fault(
          entry === '' ? place : entry,
          'expected a host in lower case with optional wildcard labels, port and path',
        ),
      );
    else patterns.add(entry);
  }
  if (list.length > MAX_ENTRIES)
    faults.push(
      fault(
        'spec.matchImages',
        `it has ${list.length} entries, at most ${MAX_ENTRIES} are allowed: use wildcards such as *.example.com`,
      ),
    );
  return { patterns: [...patterns], faults };
}

function fault(pattern: string, message: string): MatchImageVerdict {
  return { pattern, verdict: 'Unusable', message };
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'a map' : `a ${typeof value === 'string' ? 'text' : typeof value}`;
}
