/** `canary` of the configuration: which nodes are first, what they have to show, and how long they may take. */
import { parseImageReference } from '../../rules/auth-lookup/image-reference.ts';
import { parseGoDuration } from '../../rules/go/duration.ts';
import { isRecord } from '../../rules/record.ts';

/** `canary` of the fleet. */
export interface CanaryOptions {
  /** Key of the label whose value is the pool of a node. @default {all nodes are one pool} */
  readonly poolLabel?: string;
  /** Images that the first node asks registries for. @default none */
  readonly probe?: readonly string[];
  /** How long the first node may take before its pool is held. @default {10 minutes} */
  readonly withinMs?: number;
}

type Part = Partial<CanaryOptions>;

/** More would only take the longer. */
const MOST_IMAGES = 10;
const LEAST_MS = 60_000;

const READ: Readonly<Record<string, (value: unknown) => Part | string>> = {
  poolLabel: (value) =>
    typeof value === 'string' && value !== '' ? { poolLabel: value } : 'must be the key of a label',
  probe: (value) =>
    Array.isArray(value) && value.length > 0 && value.length <= MOST_IMAGES && value.every(isImage)
      ? { probe: value as readonly string[] }
      : `must be a list of 1 to ${MOST_IMAGES} images with their registries, such as [quay.io/acme/web:1]`,
  within: (value) => {
    const ns = typeof value === 'string' ? parseGoDuration(value) : undefined;
    return ns !== undefined && ns / 1e6 >= LEAST_MS
      ? { withinMs: ns / 1e6 }
      : 'must be a duration of at least 1m, such as 10m';
  },
};

/** A short name stands for another image on each node. */
function isImage(value: unknown): boolean {
  if (typeof value !== 'string') return false;
  const [registry = '', ...path] = value.split('/');
  return path.length > 0 && /[.:]/.test(registry) && parseImageReference(value).ok;
}

/** Reads it; what is wrong goes to `problems`. Who is first is told by reports. */
export function readCanaryOptions(
  raw: Readonly<Record<string, unknown>>,
  problems: string[],
): { readonly canary?: CanaryOptions } {
  const value = raw['canary'];
  if (value === undefined) return {};
  if (!isRecord(value)) {
    problems.push('canary: must be a map of poolLabel, probe and within');
    return {};
  }
  if (isRecord(raw['agent']) && raw['agent']['report'] === false)
    problems.push('canary: must be agent.report, by which it is known what became of the first node');
  const parts = Object.entries(value).map(([name, one]): Part => {
    const read = Object.hasOwn(READ, name) ? READ[name]?.(one) : undefined;
    if (typeof read === 'object') return read;
    problems.push(`canary.${name}: ${read ?? 'no such option, expected one of poolLabel, probe, within'}`);
    return {};
  });
  return { canary: Object.assign({}, ...parts) as CanaryOptions };
}
