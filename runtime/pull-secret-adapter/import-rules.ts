/**
 * What becomes of each field of HyperFleet's own configuration: by path, a path covering everything below it.
 *
 * Source of the rule: the configuration readers of hyperfleet-broker, hyperfleet-adapter and hyperfleet-sentinel.
 */
import { isRecord, scalarText } from '../rules/record.ts';

/** See `ImportedNote`. */
export type ImportOutcome = 'carried' | 'unneeded' | 'todo' | 'changed' | 'dropped';

type Read = (value: unknown) => unknown;
/** A field of the section, and how a value becomes its; or why there is none. */
type Rule = readonly [field: string, read: Read] | { readonly outcome: ImportOutcome; readonly why: string };

const drop = (why: string): Rule => ({ outcome: 'dropped', why });
const nothing = (why: string): Rule => ({ outcome: 'unneeded', why });
const step = (why: string): Rule => ({ outcome: 'todo', why });
const change = (why: string): Rule => ({ outcome: 'changed', why });

const text: Read = (value) =>
  typeof value === 'string' && value !== '' && value.length <= 320 ? value : undefined;
const oneOf =
  (values: Readonly<Record<string, string>>): Read =>
  (value) =>
    typeof value === 'string' && Object.hasOwn(values, value) ? values[value] : undefined;
const truth: Read = (value) =>
  value === true || value === 'true' ? true : value === false || value === 'false' ? false : undefined;
const whole: Read = (value) => (/^[1-9]\d{0,2}$/.test(scalarText(value)) ? Number(value) : undefined);
/** A duration of Go, in whole seconds. */
const inSeconds: Read = (value) => {
  const parts = /^(?:(\d{1,5})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?$/.exec(scalarText(value));
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
const LIMITED = 'requests are limited by adapterOptions.concurrency, and by what the API server says';
const PULLING = 'the consumer takes what adapterOptions.concurrency says';
const TASK = 'what is done for a cluster is built in; adapterOptions says how, among it the dependencies';

/** By path; a path covers everything below it. */
export const RULES: Readonly<Record<string, Rule>> = {
  'broker.type': ['broker', oneOf({ rabbitmq: 'rabbitmq', googlepubsub: 'pubsub', pubsub: 'pubsub' })],
  'broker.rabbitmq.url': step(
    'it holds a password: put it into Secret "pull-secret-adapter-broker" of the namespace, key "url"',
  ),
  'broker.rabbitmq.exchange': ['exchange', text],
  'broker.rabbitmq.exchange_type': [
    'exchangeType',
    oneOf({ topic: 'topic', fanout: 'fanout', direct: 'direct' }),
  ],
  'broker.rabbitmq.routing_key': ['routingKey', text],
  'broker.rabbitmq.queue': step(
    'the queue is named <topic>-<subscription>: unbind the old one once it is empty',
  ),
  'broker.rabbitmq.prefetch_count': nothing(PULLING),
  'broker.rabbitmq.prefetch_size': nothing(PULLING),
  'broker.rabbitmq.consumer_tag': nothing('it is made up for each connection'),
  'broker.rabbitmq.publisher_confirm': nothing('confirms are always on'),
  'broker.googlepubsub.project_id': ['gcpProject', text],
  'broker.googlepubsub.topic': ['topic', text],
  'broker.googlepubsub.subscription': ['subscription', text],
  'broker.googlepubsub.create_topic_if_missing': ['createTopics', truth],
  'broker.googlepubsub.create_subscription_if_missing': ['createTopics', truth],
  'broker.googlepubsub.dead_letter_topic': drop('it is <subscription>-dlq, as it was'),
  'broker.googlepubsub.max_outstanding_messages': nothing(PULLING),
  'broker.googlepubsub.num_goroutines': nothing(PULLING),
  'subscriber.parallelism': ['adapterOptions.concurrency', whole],
  log_config: nothing('the configuration is never logged'),
  publisher: nothing('it says nothing'),
  'adapter.name': ['adapterOptions.adapterName', text],
  'adapter.version': nothing('the image is named once for the whole fleet'),
  'log.level': flag('log-level', ['debug', 'info', 'warn', 'error']),
  'log.format': flag('log-format', ['json', 'text']),
  'log.output': nothing('logs go to standard error'),
  'clients.hyperfleet_api.base_url': ['api', url],
  'clients.hyperfleet_api.auth': change(TOKEN),
  'clients.hyperfleet_api.page_size': nothing('it is 100'),
  'clients.hyperfleet_api.timeout': nothing(BUILT_IN),
  'clients.hyperfleet_api.retry_attempts': nothing(BUILT_IN),
  'clients.hyperfleet_api.retry_backoff': nothing(BUILT_IN),
  'clients.hyperfleet_api.base_delay': nothing(BUILT_IN),
  'clients.hyperfleet_api.max_delay': nothing(BUILT_IN),
  'clients.hyperfleet_api.default_headers': drop('no headers are added'),
  'clients.broker.subscription_id': ['subscription', text],
  'clients.broker.topic': ['topic', text],
  'clients.kubernetes.kube_config_path': drop(IN_CLUSTER),
  'clients.kubernetes.api_version': nothing('each kind has the version that the API server serves'),
  'clients.kubernetes.qps': nothing(LIMITED),
  'clients.kubernetes.burst': nothing(LIMITED),
  'clients.maestro': drop('work goes to the cluster that the adapter runs in'),
  params: drop(TASK),
  preconditions: drop(TASK),
  resources: drop(TASK),
  post: drop(TASK),
  'hyperfleet_api.endpoint': ['api', url],
  'hyperfleet_api.timeout': nothing(BUILT_IN),
  poll_interval: ['sentinelOptions.pollSeconds', inSeconds],
  backoff_ready: ['sentinelOptions.maxAgeSeconds', inSeconds],
  backoff_not_ready: ['sentinelOptions.debounceSeconds', inSeconds],
  resource_selector: ['sentinelOptions.labels', labels],
};

/** What can have one value here. */
export const FIXED: Readonly<Record<string, (value: unknown) => Rule>> = {
  resource_type: (value) =>
    value === 'clusters'
      ? { outcome: 'carried', why: 'clusters are what Sentinel speaks of' }
      : drop('Sentinel speaks of clusters alone'),
  'clients.hyperfleet_api.version': (value) =>
    value === 'v1' ? nothing('it is v1') : drop('v1 is the one that is spoken'),
};

/** Variables to the fields that they stand for. */
export const VARIABLES: Readonly<Record<string, string>> = {
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
