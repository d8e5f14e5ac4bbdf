/** The configuration of HyperFleet's own programs becomes a section that a fleet takes, and whatever could not be carried over is named. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { schema } from '../../charts/pull-secret-adapter/chart.ts';
import { parseYaml } from '../../runtime/kube/yaml.ts';
import { type ImportedFiles, importSection } from '../../runtime/pull-secret-adapter/import-section.ts';
import { plantedPassword } from '../support/canary.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('adapter import');
const main = new URL('../../main.ts', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'pullwright-adapter-import-'));
const PASSWORD = plantedPassword('adapter-import');

const BROKER = `broker:
  type: rabbitmq
  rabbitmq:
    url: amqp://user:${PASSWORD}@rabbit:5672/
    exchange_type: topic
    prefetch_count: 20
publisher:
subscriber:
  parallelism: 4
log_config: false
`;
const ADAPTER = `adapter: { name: pullsecret, version: 0.3.1 }
log: { level: debug, format: json, output: stdout }
clients:
  hyperfleet_api:
    base_url: http://hyperfleet-api:8000
    timeout: 10s
    auth: { token_path: /var/run/token }
  broker: { subscription_id: pullsecret-sub, topic: hyperfleet-clusters }
  kubernetes: { qps: 50 }
`;
const SENTINEL = `resource_type: clusters
poll_interval: 1m5s
resource_selector: [{ label: region, value: us-east }]
message_decision: { params: { seen: 'condition("Reconciled").observed_generation' }, result: resource.generation > seen }
message_data: { id: resource.id }
`;

function pullwright(
  args: readonly string[],
  { env }: { readonly env: Readonly<Record<string, string>> },
): Promise<ProcessResult> {
  return runProcess([process.execPath, main, ...args], { env });
}

test('three files and two variables become a section that a fleet takes', async () => {
  for (const [name, text] of Object.entries({ broker: BROKER, adapter: ADAPTER, sentinel: SENTINEL }))
    writeFileSync(join(folder, `${name}.yaml`), text);
  const { code, stdout, stderr } = await pullwright(
    [
      'adapter',
      'import',
      '--broker',
      join(folder, 'broker.yaml'),
      '--adapter-config',
      join(folder, 'adapter.yaml'),
      '--sentinel-config',
      join(folder, 'sentinel.yaml'),
      '--job-google-service-account',
      'jobs@example.iam.gserviceaccount.com',
    ],
    {
      env: {
        HYPERFLEET_API_BASE_URL: 'https://hyperfleet.example.com',
        BROKER_RABBITMQ_URL: `amqp://u:${PASSWORD}@h`,
      },
    },
  );
  assert.deepEqual([code, stderr], [1, '']);
  assert.ok(!stdout.includes(PASSWORD), 'the password of the broker is printed');
  const { systems } = parseYaml(stdout) as { readonly systems: Readonly<Record<string, unknown>> };
  const section = systems['pull-secret-adapter'];
  assert.deepEqual(section, {
    adapterOptions: { adapterName: 'pullsecret', concurrency: 4 },
    api: 'https://hyperfleet.example.com',
    args: ['--log-format', 'json', '--log-level', 'debug'],
    broker: 'rabbitmq',
    exchangeType: 'topic',
    jobGoogleServiceAccount: 'jobs@example.iam.gserviceaccount.com',
    sentinel: true,
    sentinelOptions: {
      labels: { region: 'us-east' },
      messageData: { id: 'resource.id' },
      messageDecision: {
        params: { seen: 'condition("Reconciled").observed_generation' },
        result: 'resource.generation > seen',
      },
      pollSeconds: 65,
    },
    subscription: 'pullsecret-sub',
    topic: 'hyperfleet-clusters',
  });
  assert.ok(schema.safeParse(section).success);
  for (const line of [
    /# {3}adapter: clients\.hyperfleet_api\.base_url: api is what HYPERFLEET_API_BASE_URL says/,
    /# {3}adapter: clients\.hyperfleet_api\.auth: .*expected apiTokenAudience/,
    /# {3}broker: broker\.rabbitmq\.url: .*Secret "pull-secret-adapter-broker"/,
    /# {3}broker: broker\.rabbitmq\.prefetch_count: .*concurrency/,
    /# Needs nothing:\n(# {3}.*\n)*# {3}adapter: clients\.kubernetes\.qps: /,
  ])
    assert.match(stdout, line);
});

test('it ends with 0 where nothing is lost: what needs nothing and what is left to do elsewhere are named', async () => {
  writeFileSync(join(folder, 'plain.yaml'), BROKER);
  const run = (more: readonly string[]): Promise<ProcessResult> =>
    pullwright(['adapter', 'import', '--broker', join(folder, 'plain.yaml'), ...more], {
      env: { HYPERFLEET_API_BASE_URL: 'https://hyperfleet.example.com', HYPERFLEET_API_VERSION: 'v1' },
    });
  const good = await run(['--job-google-service-account', 'jobs@example.iam.gserviceaccount.com']);
  assert.deepEqual([good.code, good.stderr], [0, '']);
  assert.match(good.stdout, /# Left to do outside of this section:\n# {3}broker: broker\.rabbitmq\.url: /);
  assert.doesNotMatch(good.stdout, /Is lost|To edit/);
  // Without the account no fleet takes the section.
  const unfinished = await run([]);
  assert.equal(unfinished.code, 1);
  assert.match(unfinished.stdout, /# To edit below:\n# {3}systems\.pull-secret-adapter/);
});

interface Row extends Case {
  readonly files?: ImportedFiles;
  readonly env?: Readonly<Record<string, string>>;
  /** Outcome and subject of the one note that is looked for, and what it says. */
  readonly note: readonly [outcome: string, subject: string, says: RegExp];
  readonly section: Readonly<Record<string, unknown>>;
}

const ROWS: readonly Row[] = [
  {
    name: 'no type of exchange',
    reason: "their library's default is not ours",
    files: { broker: { broker: { type: 'rabbitmq' } } },
    note: ['carried', 'broker: broker.rabbitmq.exchange_type', /means fanout/],
    section: { broker: 'rabbitmq', exchangeType: 'fanout' },
  },
  {
    name: 'Pub/Sub by variables',
    reason: 'as their deployments have it',
    env: { BROKER_TYPE: 'googlepubsub', BROKER_GOOGLEPUBSUB_PROJECT_ID: 'p', PATH: '/bin' },
    note: ['carried', 'BROKER_TYPE', /^broker$/],
    section: { broker: 'pubsub', gcpProject: 'p' },
  },
  {
    name: 'a broker that is not known here',
    reason: 'it must not become another one',
    env: { BROKER_TYPE: 'awsSqs' },
    note: ['dropped', 'BROKER_TYPE', /does not fit broker/],
    section: {},
  },
  {
    name: 'a type of exchange that is not known here',
    reason: 'headers route by nothing that we send',
    files: { broker: { broker: { type: 'rabbitmq', rabbitmq: { exchange_type: 'headers' } } } },
    note: ['dropped', 'broker: broker.rabbitmq.exchange_type', /does not fit exchangeType/],
    section: { broker: 'rabbitmq', exchangeType: 'fanout' },
  },
  {
    name: 'an API with a password in its URL',
    reason: 'it would stand in git',
    env: { HYPERFLEET_API_BASE_URL: `https://u:${PASSWORD}@api.example.com` },
    note: ['dropped', 'HYPERFLEET_API_BASE_URL', /does not fit api/],
    section: {},
  },
  {
    name: 'data by templates of Go, as the first release had them',
    reason: 'they are no CEL',
    files: { sentinel: { message_data: { id: '.id' } } },
    note: ['dropped', 'sentinel: message_data', /message_data\.id: /],
    section: { sentinel: true },
  },
  {
    name: 'another version of the API',
    reason: 'only v1 is spoken',
    env: { HYPERFLEET_API_VERSION: 'v2' },
    note: ['dropped', 'HYPERFLEET_API_VERSION', /v1/],
    section: {},
  },
  {
    name: 'a file that a variable overrules',
    reason: 'it means as little there',
    files: { adapter: { clients: { broker: { topic: 'one' } } } },
    env: { HYPERFLEET_BROKER_TOPIC: 'two' },
    note: ['unneeded', 'adapter: clients.broker.topic', /HYPERFLEET_BROKER_TOPIC/],
    section: { topic: 'two' },
  },
  {
    name: 'two files that say different things',
    reason: 'somebody has to look',
    files: {
      broker: { broker: { googlepubsub: { topic: 'one' } } },
      adapter: { clients: { broker: { topic: 'two' } } },
    },
    note: ['dropped', 'adapter: clients.broker.topic', /broker: broker\.googlepubsub\.topic/],
    section: { topic: 'one' },
  },
  {
    name: 'another cluster',
    reason: 'the pods work in their own',
    files: { adapter: { clients: { kubernetes: { kube_config_path: '/kube/config', qps: 5 } } } },
    note: ['dropped', 'adapter: clients.kubernetes.kube_config_path', /ServiceAccount/],
    section: {},
  },
  {
    name: 'a Sentinel of node pools',
    reason: 'it would speak of something else',
    files: { sentinel: { resource_type: 'nodepools' } },
    note: ['dropped', 'sentinel: resource_type', /clusters alone/],
    section: { sentinel: true },
  },
  {
    name: 'the task of their adapter',
    reason: 'its language is not built here',
    files: { adapter: { preconditions: [{ name: 'x', expression: 'true' }] } },
    note: ['dropped', 'adapter: preconditions', /built in/],
    section: {},
  },
  {
    name: 'a field that nobody knows, with control characters',
    reason: 'nothing is lost silently, and no terminal obeys it',
    files: { adapter: { '\u001b[2J': { deep: 1 } } },
    note: ['dropped', 'adapter: \\u001b[2J.deep', /no field here/],
    section: {},
  },
  {
    name: 'a variable that nobody knows',
    reason: 'nothing is lost silently',
    env: { HYPERFLEET_TRACING_ENABLED: 'true' },
    note: ['dropped', 'HYPERFLEET_TRACING_ENABLED', /no field here/],
    section: {},
  },
];

table(test, ROWS, ({ files = {}, env = {}, note: [outcome, subject, says], section }) => {
  const found = importSection(files, env);
  assert.deepEqual(found.section, section);
  const note = found.notes.find((one) => one.subject === subject && one.outcome === outcome);
  assert.match(note?.message ?? `no such note in ${JSON.stringify(found.notes)}`, says);
  assert.ok(!JSON.stringify(found).includes(PASSWORD));
});

test('a file that cannot be read, and nothing at all, are said without what they hold', async () => {
  writeFileSync(join(folder, 'bad.yaml'), `broker: [${PASSWORD}`);
  const bad = await pullwright(['adapter', 'import', '--broker', join(folder, 'bad.yaml')], { env: {} });
  assert.equal(bad.code, 1);
  assert.match(bad.stderr, /Cannot import ".*bad\.yaml": it is not YAML \(.+\), expected a map/);
  assert.ok(!bad.stderr.includes(PASSWORD));
  writeFileSync(join(folder, 'list.yaml'), `- ${PASSWORD}`);
  for (const [file, says] of [
    ['none.yaml', /none\.yaml": it is not there/],
    ['.', /it is no file that can be read/],
    ['list.yaml', /list\.yaml": it holds no map/],
  ] as const) {
    const ran = await pullwright(['adapter', 'import', '--broker', join(folder, file)], { env: {} });
    assert.equal(ran.code, 1);
    assert.match(ran.stderr, says);
    assert.ok(!ran.stderr.includes(PASSWORD));
  }
  const nothing = await pullwright(['adapter', 'import'], { env: {} });
  assert.equal(nothing.code, 2);
  assert.match(nothing.stderr, /Run "pullwright adapter import --help" for usage\n$/);
});

test.lastly('the work folder is removed', () => rmSync(folder, { recursive: true, force: true }));
test.run();
