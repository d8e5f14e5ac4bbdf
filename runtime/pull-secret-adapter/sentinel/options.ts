/** Options of Sentinel. `synth` validates them, so that no pod exits with a usage error. */
import { z } from 'zod';
import type { Flags } from '../../cli/flags.ts';
import { UsageError } from '../../core/errors.ts';
import { type Frozen, optional } from '../../core/kubernetes/fields.ts';
import { defined } from '../../core/record.ts';
import { DEFAULT_DEPENDENCIES, fieldArgs, fieldFlags, fieldValues, secondsFrom } from '../options.ts';
import { DEFAULT_MESSAGES, dataSchema, decisionSchema, type Messages, readMessages } from './messages.ts';

/** Path of the messages file in Sentinel's container. */
export const MESSAGES_FILE = '/etc/pullwright/messages/messages.yaml';

/** Content of the `--messages` file; undefined if the options set no messages. */
export function messagesOf({
  messageDecision,
  messageData,
}: SentinelInput): Readonly<Record<string, unknown>> | undefined {
  const messages = defined({ message_decision: messageDecision, message_data: messageData });
  return Object.keys(messages).length === 0 ? undefined : messages;
}

/** The options with their defaults, and the compiled messages. */
export interface SentinelSettings
  extends Required<Omit<SentinelInput, 'messageDecision' | 'messageData' | 'eventType'>> {
  /** @default {depends on the rule} */
  readonly eventType?: string;
  /** Data of the events; with rule `reconcile`, may also replace the decision by generation and age. */
  readonly messages: Messages;
}

export const DEFAULT_SENTINEL: SentinelSettings = {
  rule: 'reconcile',
  dependencies: DEFAULT_DEPENDENCIES,
  labels: {},
  pollSeconds: 5,
  maxAgeSeconds: 1800,
  debounceSeconds: 10,
  repeatLimitSeconds: 60,
  messages: DEFAULT_MESSAGES,
};

/** Safe in the search query of the API and in a flag: no space, quote or "=". */
const LABEL = /^[A-Za-z0-9]([\w./-]{0,251}[A-Za-z0-9])?$/;
const labelText = z.string().regex(LABEL, {
  error: 'expected letters, digits, "-", "_", "." and "/", a letter or digit at both ends',
});

const sentinelFields = z.strictObject(
  optional({
    rule: z.enum(['reconcile', 'dependencies']).describe('When an event is sent'),
    dependencies: z
      .array(z.string().regex(LABEL, { error: 'expected the name of an adapter' }))
      .min(1)
      .max(50)
      .describe('Adapters that must be available first, with rule "dependencies"'),
    eventType: z
      .string()
      .regex(/^[\w.-]{1,200}$/, { error: 'expected letters, digits, ".", "-" and "_"' })
      .describe(
        'Type of the events; if unset, com.redhat.hyperfleet.cluster.reconcile, or cluster.create with rule "dependencies"',
      ),
    labels: z.record(labelText, labelText).describe('Only clusters with these labels'),
    pollSeconds: secondsFrom(1).describe('Pause between two passes over all clusters'),
    maxAgeSeconds: secondsFrom(1).describe('Maximum age of the report of a reconciled cluster'),
    debounceSeconds: secondsFrom(0).describe('Maximum age of the report of any other cluster'),
    repeatLimitSeconds: secondsFrom(0).describe(
      "Longest pause between events about a cluster without new reports; 0: an event at every poll, like HyperFleet's Sentinel",
    ),
  }),
);

export const sentinelSchema = sentinelFields
  .extend({
    messageDecision: decisionSchema
      .exactOptional()
      .describe("When an event is sent, in CEL, in the format of HyperFleet's Sentinel"),
    messageData: dataSchema.exactOptional().describe('Data of an event: names to CEL expressions'),
  })
  .refine((one) => one.rule !== 'dependencies' || one.messageDecision === undefined, {
    path: ['messageDecision'],
    error: 'conflicts with rule "dependencies": expected one of them',
  })
  .superRefine((one, context) => {
    try {
      readMessages(one);
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
    const maxAge = maxAgeSeconds ?? DEFAULT_SENTINEL.maxAgeSeconds;
    const debounce = debounceSeconds ?? DEFAULT_SENTINEL.debounceSeconds;
    if (debounce <= maxAge) return;
    context.addIssue({
      code: 'custom',
      path: [debounceSeconds === undefined ? 'maxAgeSeconds' : 'debounceSeconds'],
      message: `debounceSeconds (${debounce}) is longer than maxAgeSeconds (${maxAge}): other clusters would get events less often than reconciled ones`,
    });
  });

/** Every field is optional; `pullwright sentinel --help` lists the defaults. */
export type SentinelInput = Frozen<z.input<typeof sentinelSchema>>;

/** Flags of `pullwright sentinel` that set these options. */
export function sentinelArgs(input: SentinelInput): readonly string[] {
  const messages = messagesOf(input) === undefined ? undefined : MESSAGES_FILE;
  return fieldArgs([...Object.keys(sentinelFields.shape), 'messages'], { ...input, messages });
}

/** Flags of `pullwright sentinel` for the options. */
export const SENTINEL_FLAGS: Flags = fieldFlags(sentinelFields.shape, DEFAULT_SENTINEL);

/** The settings from the flags. @param file parsed content of the `--messages` file @throws UsageError */
export function sentinelSettings(flags: object, file: object): SentinelSettings {
  const {
    message_decision: messageDecision,
    message_data: messageData,
    ...others
  } = file as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(others).map((name) => JSON.stringify(name));
  if (unknown.length > 0)
    throw new UsageError(
      `Cannot use the messages: unknown field ${unknown.join(', ')}; must be one of "message_decision", "message_data"`,
    );
  const input = fieldValues(sentinelFields.shape, sentinelSchema, flags, { messageDecision, messageData });
  return { ...DEFAULT_SENTINEL, ...input, messages: readMessages(input) };
}
