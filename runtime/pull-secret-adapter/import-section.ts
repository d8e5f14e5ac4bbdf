/**
 * The configuration of HyperFleet's own adapter and Sentinel as a section of a fleet: `broker.yaml`, the AdapterConfig, Sentinel's file, and
 * the variables `BROKER_*` and `HYPERFLEET_*`, which win over files. What has no field here is named, with the reason. Pure.
 *
 * Source of the rule: the configuration readers of hyperfleet-broker, hyperfleet-adapter and hyperfleet-sentinel.
 */
import { isRecord, scalarText } from '../rules/record.ts';
import { onOneLine } from '../rules/text/printable.ts';
import { FIXED, type ImportOutcome, RULES, VARIABLES } from './import-rules.ts';
import { readMessages } from './sentinel/messages.ts';

export interface ImportedNote {
  /**
   * `carried`: means the same. `unneeded`: has no field, and nothing is lost with it. `todo`: a step outside of the section. `changed`:
   * the section wants an edit. `dropped`: is lost, or means something else here.
   */
  readonly outcome: ImportOutcome;
  /** File, or variable, and field. */
  readonly subject: string;
  readonly message: string;
}

export interface ImportedSection {
  /** `systems.pull-secret-adapter`. */
  readonly section: Readonly<Record<string, unknown>>;
  readonly notes: readonly ImportedNote[];
}

/** Parsed files, by what they are; absent ones are not given. */
export interface ImportedFiles {
  readonly broker?: unknown;
  readonly adapter?: unknown;
  readonly sentinel?: unknown;
}

const UNKNOWN = { outcome: 'dropped', why: 'it has no field here' } as const;

interface Given {
  readonly subject: string;
  readonly path: string;
  readonly value: unknown;
}

/**
 * @param env variables; only `BROKER_*`, `SUBSCRIBER_PARALLELISM` and `HYPERFLEET_*` are looked at
 *
 * @example
 * ```ts
 * import { importSection } from './import-section.ts';
 * import assert from 'node:assert/strict';
 *
 * const broker = { broker: { type: 'rabbitmq', rabbitmq: { url: 'amqp://user:password@host', exchange_type: 'topic' } } };
 * const { section, notes } = importSection({ broker }, { HYPERFLEET_API_BASE_URL: 'https://api.example.com' });
 * assert.deepEqual(section, { api: 'https://api.example.com', broker: 'rabbitmq', exchangeType: 'topic' });
 * assert.doesNotMatch(JSON.stringify(notes), /password@/);
 * ```
 */
export function importSection(
  files: ImportedFiles,
  env: Readonly<Record<string, string | undefined>>,
): ImportedSection {
  const fields = new Map<string, { readonly value: unknown; readonly subject: string }>();
  const notes: ImportedNote[] = [];
  const say = (outcome: ImportOutcome, subject: string, message: string): void => {
    notes.push({ outcome, subject: onOneLine(subject).slice(0, 200), message });
  };
  for (const { subject, path, value } of [...variables(env), ...leavesOf(files)]) {
    const rule = FIXED[path]?.(value) ?? RULES[path] ?? UNKNOWN;
    if ('outcome' in rule) {
      say(rule.outcome, subject, rule.why);
      continue;
    }
    const [field, read] = rule;
    const found = read(value);
    const before = fields.get(field);
    if (found === undefined) say('dropped', subject, `its value does not fit ${field}`);
    else if (before === undefined) {
      fields.set(field, { value: found, subject });
      say('carried', subject, field);
    } else if (JSON.stringify(before.value) === JSON.stringify(found)) say('carried', subject, field);
    else {
      // As with their programs, a variable wins over a file; two files that differ are something to look at.
      const isVariable = !before.subject.includes(':');
      say(isVariable ? 'unneeded' : 'dropped', subject, `${field} is what ${before.subject} says`);
    }
  }
  const section = sectionOf(fields);
  finish(section, files, say);
  return { section, notes };
}

function variables(env: Readonly<Record<string, string | undefined>>): readonly Given[] {
  return Object.entries(env)
    .filter(([name, value]) => /^(BROKER|HYPERFLEET)_|^SUBSCRIBER_PARALLELISM$/.test(name) && value !== '')
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => ({ subject: name, path: VARIABLES[name] ?? name, value }));
}

function leavesOf(files: ImportedFiles): readonly Given[] {
  return (['broker', 'adapter', 'sentinel'] as const).flatMap((file) => {
    const { [file]: document } = files;
    const { message_decision: _decision, message_data: _data, ...rest } = isRecord(document) ? document : {};
    const own = file === 'sentinel' ? rest : isRecord(document) ? document : {};
    return leaves(own, '', 0).map((one) => ({ ...one, subject: `${file}: ${one.path}` }));
  });
}

function leaves(value: unknown, path: string, depth: number): readonly Omit<Given, 'subject'>[] {
  // A rule for the whole, or something that has no parts.
  if (Object.hasOwn(RULES, path) || !isRecord(value) || depth > 6)
    return value === null || value === undefined ? [] : [{ path, value }];
  return Object.entries(value).flatMap(([name, one]) =>
    leaves(one, path === '' ? name : `${path}.${name}`, depth + 1),
  );
}

function sectionOf(fields: ReadonlyMap<string, { readonly value: unknown }>): Record<string, unknown> {
  const section: Record<string, unknown> = {};
  const args: string[] = [];
  for (const [field, { value }] of [...fields].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const [first = '', second] = field.split('.');
    if (first === 'args') args.push(`--${second}`, scalarText(value));
    else if (second === undefined) section[first] = value;
    else section[first] = { ...(section[first] as object | undefined), [second]: value };
  }
  return args.length === 0 ? section : { ...section, args };
}

/** What follows from the whole: defaults that differ, Sentinel with its messages. */
function finish(
  section: Record<string, unknown>,
  files: ImportedFiles,
  say: (outcome: ImportOutcome, subject: string, message: string) => void,
): void {
  if (section['broker'] === 'rabbitmq' && section['exchangeType'] === undefined) {
    section['exchangeType'] = 'fanout';
    say(
      'carried',
      'broker: broker.rabbitmq.exchange_type',
      'exchangeType: not given, which means fanout there',
    );
  }
  const { sentinel } = files;
  if (!isRecord(sentinel)) return;
  section['sentinel'] = true;
  const { message_decision: decision, message_data: data } = sentinel;
  for (const [name, field, value] of [
    ['message_decision', 'messageDecision', decision],
    ['message_data', 'messageData', data],
  ] as const) {
    if (value === undefined) continue;
    try {
      readMessages({ [name]: value });
      section['sentinelOptions'] = { ...(section['sentinelOptions'] as object | undefined), [field]: value };
      say('carried', `sentinel: ${name}`, `sentinelOptions.${field}`);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      say('dropped', `sentinel: ${name}`, onOneLine(error.message).slice(0, 300));
    }
  }
}
