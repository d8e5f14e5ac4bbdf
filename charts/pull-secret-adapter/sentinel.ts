/** How Sentinel decides, as the fleet says it: checked when it is rendered, so that no pod ends with "wrong usage". */
import { z } from 'zod';

/** Every field may be left out; what is left out is as `pullwright sentinel --help` says. */
export interface SentinelInput {
  /** `reconcile`: by generation and age. `dependencies`: once the adapters that come first are available. @default {'reconcile'} */
  readonly rule?: 'reconcile' | 'dependencies';
  /** Adapters that come first, with rule `dependencies`. @default {['validation', 'dns', 'placement']} */
  readonly dependencies?: readonly string[];
  /** Type of the events. @default by the rule */
  readonly eventType?: string;
  /** Only clusters with these labels. @default {{}} */
  readonly labels?: Readonly<Record<string, string>>;
  /** Pause between two goes. @default {5} */
  readonly pollSeconds?: number;
  /** How old the report about a cluster that is as it should be may become. @default {1800} */
  readonly maxAgeSeconds?: number;
  /** The same for a cluster that is not. @default {10} */
  readonly debounceSeconds?: number;
  /** Longest pause between events about a cluster of which nobody reports anything new; 0: none. @default {60} */
  readonly repeatLimitSeconds?: number;
}

/** What `pullwright sentinel` takes without saying so. */
const DEFAULTS = { maxAgeSeconds: 1800, debounceSeconds: 10 } as const;

const secondsFrom = (least: number): z.ZodInt => z.int().min(least).max(999_999_999);
/** Of the search query of the API, and of a flag: no blank, no quote, no "=". */
const LABEL = /^[A-Za-z0-9]([\w./-]{0,251}[A-Za-z0-9])?$/;
const labelText = z.string().regex(LABEL, {
  error: 'wanted letters, digits, "-", "_", "." and "/", a letter or digit at both ends',
});

export const sentinelSchema: z.ZodType<SentinelInput, SentinelInput> = z
  .strictObject({
    rule: z.enum(['reconcile', 'dependencies']).exactOptional().describe('When an event is sent'),
    dependencies: z
      .array(z.string().regex(LABEL, { error: 'wanted the name of an adapter' }))
      .min(1)
      .max(50)
      .exactOptional()
      .describe('Adapters that come first, with rule "dependencies"'),
    eventType: z
      .string()
      .regex(/^[\w.-]{1,200}$/, { error: 'wanted letters, digits, ".", "-" and "_"' })
      .exactOptional()
      .describe('Type of the events'),
    labels: z.record(labelText, labelText).exactOptional().describe('Only clusters with these labels'),
    pollSeconds: secondsFrom(1).exactOptional().describe('Pause between two goes'),
    maxAgeSeconds: secondsFrom(1)
      .exactOptional()
      .describe('How old the report about a good cluster may become'),
    debounceSeconds: secondsFrom(0).exactOptional().describe('The same for a cluster that is not good'),
    repeatLimitSeconds: secondsFrom(0)
      .exactOptional()
      .describe('Longest pause between events about a cluster of which nobody reports anything new'),
  })
  .refine((one) => one.rule === 'dependencies' || one.dependencies === undefined, {
    path: ['dependencies'],
    error: 'says nothing with rule "reconcile": wanted rule "dependencies", or no such field',
  })
  .superRefine(({ maxAgeSeconds, debounceSeconds }, context) => {
    const maxAge = maxAgeSeconds ?? DEFAULTS.maxAgeSeconds;
    const debounce = debounceSeconds ?? DEFAULTS.debounceSeconds;
    if (debounce <= maxAge) return;
    context.addIssue({
      code: 'custom',
      path: [debounceSeconds === undefined ? 'maxAgeSeconds' : 'debounceSeconds'],
      message: `debounceSeconds (${debounce}) is longer than maxAgeSeconds (${maxAge}): a cluster in need would be looked at less often than a good one`,
    });
  });

/**
 * Flags of `pullwright sentinel`.
 *
 * @example
 * ```ts
 * import { sentinelArgs } from './sentinel.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(sentinelArgs({ rule: 'dependencies', dependencies: ['dns'], labels: { tier: 'gold' } }), [
 *   '--rule', 'dependencies', '--dependency', 'dns', '--label', 'tier=gold',
 * ]);
 * ```
 */
export function sentinelArgs(input: SentinelInput): readonly string[] {
  const labels = Object.entries(input.labels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    ...flag('--rule', input.rule),
    ...(input.dependencies ?? []).flatMap((name) => ['--dependency', name]),
    ...flag('--event-type', input.eventType),
    ...labels.flatMap(([key, value]) => ['--label', `${key}=${value}`]),
    ...flag('--poll', inSeconds(input.pollSeconds)),
    ...flag('--max-age', inSeconds(input.maxAgeSeconds)),
    ...flag('--debounce', inSeconds(input.debounceSeconds)),
    ...flag('--repeat-limit', inSeconds(input.repeatLimitSeconds)),
  ];
}

function inSeconds(value: number | undefined): string | undefined {
  return value === undefined ? undefined : `${value}s`;
}

function flag(name: string, value: string | number | undefined): readonly string[] {
  return value === undefined ? [] : [name, String(value)];
}
