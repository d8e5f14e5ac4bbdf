/** How Sentinel decides, as the fleet says it: checked when it is rendered, so that no pod ends with "wrong usage". */
import { z } from 'zod';
import { fieldArgs } from '../options.ts';
import { type DataNode, readMessages } from './messages.ts';

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
  /** When an event is sent, in CEL as HyperFleet's own Sentinel has it, in place of generation and age. @default none */
  readonly messageDecision?: {
    readonly params?: Readonly<Record<string, string>>;
    readonly result: string;
  };
  /** Data of an event, in CEL: names to expressions, or to maps of such. @default `id`, `kind`, `href`, `generation` */
  readonly messageData?: DataNode;
}

/** Where Sentinel finds its messages. */
export const MESSAGES_FILE = '/etc/pullwright/messages/messages.yaml';

/** The file that `--messages` reads; undefined when the fleet says nothing of it. */
export function messagesOf({
  messageDecision,
  messageData,
}: SentinelInput): Readonly<Record<string, unknown>> | undefined {
  if (messageDecision === undefined && messageData === undefined) return undefined;
  return {
    ...(messageDecision === undefined ? {} : { message_decision: messageDecision }),
    ...(messageData === undefined ? {} : { message_data: messageData }),
  };
}

/** What `pullwright sentinel` takes without saying so. */
const DEFAULTS = { maxAgeSeconds: 1800, debounceSeconds: 10 } as const;

const secondsFrom = (least: number): z.ZodInt => z.int().min(least).max(999_999_999);
/** Of the search query of the API, and of a flag: no blank, no quote, no "=". */
const LABEL = /^[A-Za-z0-9]([\w./-]{0,251}[A-Za-z0-9])?$/;
const expression = z.string().min(1).max(4096);
const dataNode: z.ZodType<DataNode, DataNode> = z.lazy(() =>
  z.record(z.string().min(1).max(100), z.union([z.string().max(4096), z.number(), z.boolean(), dataNode])),
);
const labelText = z.string().regex(LABEL, {
  error: 'expected letters, digits, "-", "_", "." and "/", a letter or digit at both ends',
});

const sentinelFields = z.strictObject({
  rule: z.enum(['reconcile', 'dependencies']).exactOptional().describe('When an event is sent'),
  dependencies: z
    .array(z.string().regex(LABEL, { error: 'expected the name of an adapter' }))
    .min(1)
    .max(50)
    .exactOptional()
    .describe('Adapters that come first, with rule "dependencies"'),
  eventType: z
    .string()
    .regex(/^[\w.-]{1,200}$/, { error: 'expected letters, digits, ".", "-" and "_"' })
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
  messageDecision: z
    .strictObject({
      params: z
        .record(z.string().min(1).max(63), expression)
        .exactOptional()
        .describe('Names that the result can use'),
      result: expression.describe('Whether the event is sent'),
    })
    .exactOptional()
    .describe("When an event is sent, in CEL as HyperFleet's own Sentinel has it"),
  messageData: dataNode.exactOptional().describe('Data of an event: names to expressions of CEL'),
});

export const sentinelSchema: z.ZodType<SentinelInput, SentinelInput> = sentinelFields
  .refine((one) => one.rule !== 'dependencies' || one.messageDecision === undefined, {
    path: ['messageDecision'],
    error: 'says when an event is sent, and so does rule "dependencies": expected one of them',
  })
  .superRefine((one, context) => {
    const messages = messagesOf(one);
    if (messages === undefined) return;
    try {
      readMessages(messages);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      context.addIssue({
        code: 'custom',
        path: [error.message.startsWith('message_data') ? 'messageData' : 'messageDecision'],
        message: error.message,
      });
    }
  })
  .refine((one) => one.rule === 'dependencies' || one.dependencies === undefined, {
    path: ['dependencies'],
    error: 'has no effect with rule "reconcile": set rule "dependencies", or remove the field',
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
 */
export function sentinelArgs(input: SentinelInput): readonly string[] {
  const { messageDecision: _decision, messageData: _data, ...options } = input;
  const messages = messagesOf(input) === undefined ? undefined : MESSAGES_FILE;
  return fieldArgs([...Object.keys(sentinelFields.shape), 'messages'], { ...options, messages });
}
