/**
 * The fix for a pull that skips its mirrors, as an object to apply.
 *
 * The typical fault in a disconnected cluster: an image is named by tag, and the mirrors of its source are in an
 * ImageDigestMirrorSet, which serves digests only. Nodes then try the source alone, which is unreachable.
 */

import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { MirrorRule, Resolution, SkippedCandidate } from '../../core/mirrors/resolve.ts';

export interface MirrorFix {
  readonly code: 'MirrorsServeDigestsOnly' | 'MirrorsServeTagsOnly' | 'RuntimeGivesUp';
  /** The fault, with the skipped mirror. */
  readonly message: string;
  /** What to do, in one sentence. */
  readonly fix: string;
  /** What to apply; absent where an object cannot help. */
  readonly object?: KubeObject;
}

/**
 * The fix for a resolution that skips all mirrors of its source; undefined when there is no fault.
 *
 * @param hosted whether for nodes of a hosted cluster, which have no ImageTagMirrorSet
 */
export function mirrorFix(resolution: Resolution, hosted: boolean): MirrorFix | undefined {
  const { image, rule, byDigest, candidates, skipped, refusal } = resolution;
  if (refusal !== undefined) return givenUp(resolution, refusal);
  if (candidates.some(({ kind }) => kind === 'mirror')) return undefined;
  const passed = skipped.filter(({ reason }) => reason === (byDigest ? 'TagOnly' : 'DigestOnly'));
  const [first] = passed;
  if (first === undefined) return undefined;
  const object = setOf(byDigest ? 'digests' : 'tags', rule, passed, first);
  const named = `${object.kind}/${object.metadata.name}`;
  if (byDigest)
    return {
      code: 'MirrorsServeTagsOnly',
      message: `"${image}" is named by digest, and mirror "${first.location}" serves tags only: it is skipped`,
      fix: `Apply ${named}`,
      object,
    };
  const rest = candidates.length === 0 ? 'no pull source is left' : 'only the source is tried';
  const set = first.origin === undefined ? '' : ` (${first.origin.kind}/${first.origin.name})`;
  const message = `"${image}" is named by tag, and mirror "${first.location}"${set} serves digests only: it is skipped, and ${rest}`;
  const fix = `Name the image by digest (pullwright mirrors ${image} --probe shows it)`;
  if (hosted) return { code: 'MirrorsServeDigestsOnly', message, fix };
  return { code: 'MirrorsServeDigestsOnly', message, fix: `${fix}, or apply ${named}`, object };
}

function givenUp({ image, skipped }: Resolution, refusal: string): MirrorFix {
  const bad = skipped.find(({ reason }) => reason === 'InvalidReference');
  const place = bad?.kind === 'mirror' ? `mirror "${bad.location}"` : `location "${bad?.location ?? ''}"`;
  return {
    code: 'RuntimeGivesUp',
    message: `the runtime finds no pull source for "${image}" (${refusal}): ${place} resolves to "${bad?.reference ?? ''}"`,
    fix: `Add a repository to ${place}, because its source has one`,
  };
}

const KINDS = {
  tags: ['ImageTagMirrorSet', 'imageTagMirrors'],
  digests: ['ImageDigestMirrorSet', 'imageDigestMirrors'],
} as const;

/** A set of the other kind with the same mirrors; with the same policy, else the operator rejects both. */
function setOf(
  ending: keyof typeof KINDS,
  rule: Resolution['rule'],
  passed: readonly SkippedCandidate[],
  first: SkippedCandidate,
): KubeObject {
  const [kind, list] = KINDS[ending];
  const base = first.origin?.name ?? 'mirrors';
  const entry = {
    source: rule?.prefix ?? '',
    mirrors: [...new Set(passed.map(({ location }) => location))],
    ...(rule?.never === true ? { mirrorSourcePolicy: 'NeverContactSource' } : {}),
  };
  const name = `${base.slice(0, 200)}-${ending}`;
  return { apiVersion: 'config.openshift.io/v1', kind, metadata: { name }, spec: { [list]: [entry] } };
}

// Rules as a drop-in for `/etc/containers/registries.conf.d`.
// Source of the rule: containers-registries.conf(5).

export function formatRegistriesConf(rules: readonly MirrorRule[]): string {
  return rules.map(tableOf).join('\n');
}

function tableOf(rule: MirrorRule): string {
  const lines = [
    '[[registry]]',
    // A wildcard without a location is not rewritten.
    ...(rule.prefix === rule.location ? [] : [`prefix = ${quoted(rule.prefix)}`]),
    ...(rule.location === '' ? [] : [`location = ${quoted(rule.location)}`]),
    ...(rule.blocked ? ['blocked = true'] : []),
    ...(rule.insecure ? ['insecure = true'] : []),
  ];
  for (const mirror of rule.mirrors) {
    lines.push('[[registry.mirror]]', `location = ${quoted(mirror.location)}`);
    if (mirror.pullFrom !== 'all') lines.push(`pull-from-mirror = ${quoted(mirror.pullFrom)}`);
  }
  return `${lines.join('\n')}\n`;
}

/** A TOML basic string, as BurntSushi/toml writes it. Values of a mirror set need no escapes; other values may. */
export function quoted(text: string): string {
  return JSON.stringify(text).replaceAll('\u007f', '\\u007f');
}
