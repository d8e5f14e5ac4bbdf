/**
 * The configuration of HyperFleet's own adapter and Sentinel as a section of a fleet: `broker.yaml`, the AdapterConfig, Sentinel's file, and
 * the variables `BROKER_*` and `HYPERFLEET_*`, which win over files. What has no field here is named, with the reason. Pure.
 *
 * Source of the rule: the configuration readers of hyperfleet-broker, hyperfleet-adapter and hyperfleet-sentinel.
 */
import { isRecord } from '../rules/record.ts';
import { onOneLine } from '../rules/text/printable.ts';
import { readMessages } from './sentinel/messages.ts';

export interface ImportedNote {
  /** `carried`: means the same. `changed`: somebody has to do something, or it means something else. `dropped`: has no field. */
  readonly outcome: 'carried' | 'changed' | 'dropped';
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

type Read = (value: unknown) => unknown;
/** A field of the section, and how a value becomes its; or why there is none. */
type Rule =
  | readonly [field: string, read: Read]
  | { readonly outcome: ImportedNote['outcome']; readonly why: string };

const drop = (why: string): Rule => ({ outcome: 'dropped', why });
const change = (why: string): Rule => ({ outcome: 'changed', why });

const text: Read = (value) =>
  typeof value === 'string' && value !== '' && value.length <= 320 ? value : undefined;
const oneOf =
  (values: Readonly<Record<string, string>>): Read =>
  (value) =>
    typeof value === 'string' && Object.hasOwn(values, value) ? values[value] : undefined;
const truth: Read = (value) =>
  value === true || value === 'true' ? true : value === false || value === 'false' ? false : undefined;
const whole: Read = (value) => (/^[1-9]\d{0,2}$/.test(String(value)) ? Number(value) : undefined);
/** A duration of Go, in whole seconds. */
const inSeconds: Read = (value) => {
  const parts = /^(?:(\d{1,5})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?$/.exec(String(value));
  if (parts === null) return undefined;
  const [, hours = '0', minutes = '0', seconds = '0'] = parts;
  return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) || undefined;
};
const url: Read = (value) => {
  if (typeof value !== 'string' || !URL.canParse(value)) return undefined;
  const { protocol, username, password } = new URL(value);
  return /^https?:$/.test(protocol) && username === '' && password === '' ? value : undefined;
};
const labels: Read = (value) => {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const pairs = value.map((one: unknown): [unknown, unknown] =>
    isRecord(one) ? [one['label'], one['value']] : [undefined, undefined],
  );
  return pairs.every(([key, one]) => typeof key === 'string' && typeof one === 'string')
    ? Object.fromEntries(pairs)
    : undefined;
};
const flag = (name: string, values: readonly string[]): Rule => [
  `args.${name}`,
  oneOf(Object.fromEntries(values.map((one) => [one, one]))),
];

const TOKEN =
  'the pods get their token another way: expected apiTokenAudience, or apiTokenSecret with the key "token"';
const BUILT_IN = 'it is fixed: five tries with growing pauses, and Retry-After is obeyed';
const IN_CLUSTER = 'the pods use the ServiceAccount that is rendered for them';
const PULLING = 'the consumer takes what adapterOptions.concurrency says';
const TASK = 'what is done for a cluster is built in; adapterOptions says how, among it the dependencies';

/** By path; a path covers everything below it. */
const RULES: Readonly<Record<string, Rule>> = {
  'broker.type': ['broker', oneOf({ rabbitmq: 'rabbitmq', googlepubsub: 'pubsub', pubsub: 'pubsub' })],
  'broker.rabbitmq.url': change(
    'it holds a password: put it into Secret "pull-secret-adapter-broker" of the namespace, key "url"',
  ),
  'broker.rabbitmq.exchange': ['exchange', text],
  'broker.rabbitmq.exchange_type': [
    'exchangeType',
    oneOf({ topic: 'topic', fanout: 'fanout', direct: 'direct' }),
  ],
  'broker.rabbitmq.routing_key': ['routingKey', text],
  'broker.rabbitmq.queue': drop(
    'the queue is named <topic>-<subscription>: unbind the old one once it is empty',
  ),
  'broker.rabbitmq.prefetch_count': drop(PULLING),
  'broker.rabbitmq.prefetch_size': drop(PULLING),
  'broker.rabbitmq.consumer_tag': drop('it is made up for each connection'),
  'broker.rabbitmq.publisher_confirm': drop('confirms are always on'),
  'broker.googlepubsub.project_id': ['gcpProject', text],
  'broker.googlepubsub.topic': ['topic', text],
  'broker.googlepubsub.subscription': ['subscription', text],
  'broker.googlepubsub.create_topic_if_missing': ['createTopics', truth],
  'broker.googlepubsub.create_subscription_if_missing': ['createTopics', truth],
  'broker.googlepubsub.dead_letter_topic': drop('it is <subscription>-dlq, as it was'),
  'broker.googlepubsub.max_outstanding_messages': drop(PULLING),
  'broker.googlepubsub.num_goroutines': drop(PULLING),
  'subscriber.parallelism': ['adapterOptions.concurrency', whole],
  log_config: drop('the configuration is never logged'),
  publisher: drop('it says nothing'),
  'adapter.name': ['adapterOptions.adapterName', text],
  'adapter.version': drop('the image is named once for the whole fleet'),
  'log.level': flag('log-level', ['debug', 'info', 'warn', 'error']),
  'log.format': flag('log-format', ['json', 'text']),
  'log.output': drop('logs go to standard error'),
  'clients.hyperfleet_api.base_url': ['api', url],
  'clients.hyperfleet_api.auth': change(TOKEN),
  'clients.hyperfleet_api.version': drop('it is v1'),
  'clients.hyperfleet_api.page_size': drop('it is 100'),
  'clients.hyperfleet_api.timeout': drop(BUILT_IN),
  'clients.hyperfleet_api.retry_attempts': drop(BUILT_IN),
  'clients.hyperfleet_api.retry_backoff': drop(BUILT_IN),
  'clients.hyperfleet_api.base_delay': drop(BUILT_IN),
  'clients.hyperfleet_api.max_delay': drop(BUILT_IN),
  'clients.hyperfleet_api.default_headers': drop('no headers are added'),
  'clients.broker.subscription_id': ['subscription', text],
  'clients.broker.topic': ['topic', text],
  'clients.kubernetes': drop(IN_CLUSTER),
  'clients.maestro': drop('work goes to the cluster that the adapter runs in'),
  params: drop(TASK),
  preconditions: drop(TASK),
  resources: drop(TASK),
  post: drop(TASK),
  'hyperfleet_api.endpoint': ['api', url],
  'hyperfleet_api.timeout': drop(BUILT_IN),
  poll_interval: ['sentinelOptions.pollSeconds', inSeconds],
  backoff_ready: ['sentinelOptions.maxAgeSeconds', inSeconds],
  backoff_not_ready: ['sentinelOptions.debounceSeconds', inSeconds],
  resource_selector: ['sentinelOptions.labels', labels],
};

/** Variables to the fields that they stand for. */
const VARIABLES: Readonly<Record<string, string>> = {
  BROKER_TYPE: 'broker.type',
  BROKER_RABBITMQ_URL: 'broker.rabbitmq.url',
  BROKER_RABBITMQ_EXCHANGE: 'broker.rabbitmq.exchange',
  BROKER_RABBITMQ_EXCHANGE_TYPE: 'broker.rabbitmq.exchange_type',
  BROKER_RABBITMQ_ROUTING_KEY: 'broker.rabbitmq.routing_key',
  BROKER_RABBITMQ_QUEUE: 'broker.rabbitmq.queue',
  BROKER_EXCHANGE: 'broker.rabbitmq.exchange',
  BROKER_EXCHANGE_TYPE: 'broker.rabbitmq.exchange_type',
  BROKER_GOOGLEPUBSUB_PROJECT_ID: 'broker.googlepubsub.project_id',
  BROKER_PROJECT_ID: 'broker.googlepubsub.project_id',
  SUBSCRIBER_PARALLELISM: 'subscriber.parallelism',
  HYPERFLEET_API_BASE_URL: 'clients.hyperfleet_api.base_url',
  HYPERFLEET_API_VERSION: 'clients.hyperfleet_api.version',
  HYPERFLEET_API_TIMEOUT: 'clients.hyperfleet_api.timeout',
  HYPERFLEET_API_PAGE_SIZE: 'clients.hyperfleet_api.page_size',
  HYPERFLEET_API_AUTH_TOKEN_PATH: 'clients.hyperfleet_api.auth',
  HYPERFLEET_BROKER_TOPIC: 'clients.broker.topic',
  HYPERFLEET_BROKER_SUBSCRIPTION_ID: 'clients.broker.subscription_id',
  HYPERFLEET_RESOURCE_TYPE: 'resource_type',
  HYPERFLEET_POLL_INTERVAL: 'poll_interval',
  HYPERFLEET_LOG_LEVEL: 'log.level',
  HYPERFLEET_LOG_FORMAT: 'log.format',
  HYPERFLEET_LOG_OUTPUT: 'log.output',
};

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
  const say = (outcome: ImportedNote['outcome'], subject: string, message: string): void => {
    notes.push({ outcome, subject: onOneLine(subject).slice(0, 200), message });
  };
  for (const { subject, path, value } of [...variables(env), ...leavesOf(files)]) {
    const rule =
      path === 'resource_type' ? resourceType(value) : (RULES[path] ?? drop('it has no field here'));
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
    else say('dropped', subject, `${field} is what ${before.subject} says`);
  }
  const section = sectionOf(fields);
  finish(section, files, say);
  return { section, notes };
}

function resourceType(value: unknown): Rule {
  return value === 'clusters'
    ? { outcome: 'carried', why: 'clusters are what Sentinel speaks of' }
    : drop('Sentinel speaks of clusters alone');
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
    if (first === 'args') args.push(`--${second}`, String(value));
    else if (second === undefined) section[first] = value;
    else section[first] = { ...(section[first] as object | undefined), [second]: value };
  }
  return args.length === 0 ? section : { ...section, args };
}

/** What follows from the whole: defaults that differ, Sentinel with its messages. */
function finish(
  section: Record<string, unknown>,
  files: ImportedFiles,
  say: (outcome: ImportedNote['outcome'], subject: string, message: string) => void,
): void {
  if (section['broker'] === 'rabbitmq' && section['exchangeType'] === undefined) {
    section['exchangeType'] = 'fanout';
    say('changed', 'broker: broker.rabbitmq.exchange_type', 'it is not given, which means fanout there');
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
