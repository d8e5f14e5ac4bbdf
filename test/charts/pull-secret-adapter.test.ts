/** The adapter's section of a fleet, its rendered objects, and the adapter's Job: as golden files and as single assertions. */
import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import {
  type AdapterInstallation,
  adapterInstallation,
  pullSecretAdapterSystem,
  schema,
} from '../../charts/pull-secret-adapter/chart.ts';
import type { ClusterContext } from '../../charts/shared/system.ts';
import { parseFlags } from '../../runtime/cli/flags.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { parseYaml } from '../../runtime/kube/yaml.ts';
import { command as adapterCommand, tenantsOf } from '../../runtime/pull-secret-adapter/adapter/command.ts';
import { BROKER_FLAGS } from '../../runtime/pull-secret-adapter/broker/flags.ts';
import { clusterDocument } from '../../runtime/pull-secret-adapter/cluster.ts';
import { type PullSecretJobInput, pullSecretJob } from '../../runtime/pull-secret-adapter/objects.ts';
import { OPTION_FLAGS, settingsOf } from '../../runtime/pull-secret-adapter/options.ts';
import { command as sentinelCommand } from '../../runtime/pull-secret-adapter/sentinel/command.ts';
import { SENTINEL_FLAGS, sentinelSettings } from '../../runtime/pull-secret-adapter/sentinel/options.ts';
import { golden } from '../support/golden.ts';
import { cases, test } from '../support/suite.ts';

const PROVIDER = 'projects/123/locations/global/workloadIdentityPools/fleet/providers/openshift';
const IMAGE = 'registry.example.com/pullwright:0.1.0';
const SECTION = { api: 'https://hyperfleet.example.com' };
const IDENTIFIED = { ...SECTION, jobGoogleServiceAccount: 'a@b' };

const JOBS = {
  namespace: 'n',
  image: 'i',
  imagePullSecrets: [],
  serviceAccount: 's',
  federation: '',
  jobAuthorities: '',
};

const CLUSTER: ClusterContext = {
  name: 'hub',
  kind: 'management',
  delivery: 'gitops',
  namespace: 'pullwright-system',
  image: IMAGE,
  hosted: [],
  discovery: false,
};

const INSTALLED = { image: IMAGE, api: 'https://hyperfleet.example.com:8000' };
const BASE: AdapterInstallation = {
  ...INSTALLED,
  jobGoogleServiceAccount: 'pull-secrets@example-project.iam.gserviceaccount.com',
  sentinel: true,
};
const PUBSUB: AdapterInstallation = {
  ...INSTALLED,
  broker: 'pubsub',
  gcpProject: 'example-project',
  googleServiceAccount: 'events@example-project.iam.gserviceaccount.com',
  jobFederation: PROVIDER,
  replicas: 1,
  alerts: false,
  egressPorts: [3128],
};

const JOB: PullSecretJobInput = {
  ...JOBS,
  name: 'pullsecret-cls-123-gen1',
  namespace: 'hyperfleet-system',
  labels: { 'hyperfleet.io/cluster-id': 'cls-123' },
  annotations: { 'hyperfleet.io/generation': '1' },
  image: IMAGE,
  serviceAccount: 'pullsecret-adapter-job',
  needsApiServer: true,
  env: { CLUSTER_ID: 'cls-123', GCP_PROJECT_ID: 'cust-proj' },
  dataSecret: 'cluster-cls-123-pullsecret-data',
  passAs: 'file',
  jobTtlSeconds: 3600,
  jobDeadlineSeconds: 310,
};

function yaml(objects: readonly KubeObject[]): string {
  return objects
    .map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false }))
    .join('---\n');
}

interface Workload {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly containers: readonly [{ readonly args: readonly string[]; readonly env?: readonly unknown[] }];
    readonly volumes?: readonly { readonly name: string }[];
  };
}

function rendered(section: Readonly<Record<string, unknown>>): readonly KubeObject[] {
  const parsed = schema.parse({ ...IDENTIFIED, ...section });
  return pullSecretAdapterSystem.objects(parsed, CLUSTER);
}

function named(objects: readonly KubeObject[], kind: string, name: string): KubeObject {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  assert.ok(found, `${kind}/${name} is not rendered`);
  return found;
}

function workload(objects: readonly KubeObject[], name: string): Workload {
  return (named(objects, 'Deployment', name).spec as { template: Workload }).template;
}

test('RabbitMQ, Sentinel and Workload Identity', () =>
  golden('pull-secret-adapter/rabbitmq.yaml', yaml(adapterInstallation(BASE))));

test('Pub/Sub and federation', () =>
  golden('pull-secret-adapter/pubsub.yaml', yaml(adapterInstallation(PUBSUB))));

test('the Job: from a file, from the environment, with federation and authorities, for a deletion', () => {
  const { dataSecret: _none, ...deletion } = JOB;
  const trusting = { ...JOB, federation: PROVIDER, jobAuthorities: 'authorities' };
  const jobs = [JOB, { ...JOB, passAs: 'env' as const }, trusting, deletion];
  golden('pull-secret-adapter/jobs.yaml', yaml(jobs.map(pullSecretJob)));
});

test('with federation the token of the Jobs is where their configuration looks for it', () => {
  const objects = adapterInstallation(PUBSUB);
  const config = named(objects, 'ConfigMap', 'pullsecret-adapter-job-credentials')['data'] as Record<
    string,
    string
  >;
  const credentials = JSON.parse(config['credentials.json'] ?? '') as { credential_source: { file: string } };
  const job = JSON.stringify(pullSecretJob({ ...JOB, federation: PROVIDER }));
  const [folder = ''] = /^.*(?=\/token$)/.exec(credentials.credential_source.file) ?? [];
  assert.ok(job.includes(`"mountPath":"${folder}"`));
  assert.ok(job.includes('"/etc/pullwright/google/credentials.json"'));
});

interface Rule {
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

function rulesOf(kind: string, name: string): readonly Rule[] {
  return named(adapterInstallation(BASE), kind, name)['rules'] as readonly Rule[];
}

test('least rights: Secrets of other namespaces only by the one name and only for the Job; nothing can be listed or escalated', () => {
  const job = rulesOf('ClusterRole', 'pullwright-pull-secret-job');
  assert.deepEqual(
    job.map((rule) => [rule.resources, rule.resourceNames]),
    [[['secrets'], ['pull-secret']]],
  );
  const everywhere = rulesOf('ClusterRole', 'pullwright-pull-secret-adapter');
  assert.deepEqual(
    everywhere.flatMap((rule) => rule.resources),
    ['rolebindings', 'namespaces', 'clusterroles'],
  );
  // Written by name alone; looked at, and nothing else, without one.
  assert.deepEqual(
    everywhere.filter((rule) => rule.resourceNames === undefined).map((rule) => [rule.resources, rule.verbs]),
    [[['namespaces'], ['get']]],
  );
  assert.deepEqual(everywhere[0]?.resourceNames, ['pullsecret-adapter-job']);
  const bind = everywhere.find((rule) => rule.verbs.includes('bind'));
  assert.deepEqual(bind?.resourceNames, ['pullwright-pull-secret-job'], 'no other role can be given');
  const all = [...job, ...everywhere, ...rulesOf('Role', 'pullwright-pull-secret-adapter')];
  const verbs = new Set(all.flatMap((rule) => rule.verbs));
  for (const verb of ['*', 'escalate', 'impersonate', 'deletecollection'])
    assert.equal(verbs.has(verb), false);
  const secrets = all.filter((rule) => rule.resources.includes('secrets')).flatMap((rule) => rule.verbs);
  assert.equal(
    secrets.some((verb) => verb === 'list' || verb === 'watch'),
    false,
  );
});

test('no selector takes pods of Jobs for pods of the adapter', () => {
  const ofJob: Readonly<Record<string, string>> = {
    'app.kubernetes.io/name': 'pull-secret-adapter',
    'hyperfleet.io/resource-type': 'job',
  };
  const kinds = ['Deployment', 'PodDisruptionBudget', 'NetworkPolicy', 'Service'];
  for (const kind of kinds) {
    const object = named(adapterInstallation(BASE), kind, 'pull-secret-adapter');
    const text = /"(?:matchLabels|selector)":(\{"app[^}]*\})/.exec(JSON.stringify(object.spec))?.[1] ?? '{}';
    const pairs = Object.entries(JSON.parse(text) as Record<string, string>);
    assert.ok(pairs.length > 0, `${kind} has no selector`);
    assert.equal(
      pairs.every(([key, value]) => ofJob[key] === value),
      false,
      `${kind} selects Jobs`,
    );
  }
});

const EVERY_OPTION = {
  adapterName: 'secrets',
  dependencies: ['dns'],
  managementNamespace: 'hosted-{name}',
  pullSecretName: 'pull',
  gcpSecretName: 'ps-{id}',
  impersonate: '',
  passAs: 'env',
  replication: 'user-managed:{region},europe-west4',
  kmsKey: 'projects/{project}/locations/{location}/keyRings/r/cryptoKeys/k',
  keepVersions: 2,
  previousForSeconds: 604_800,
  destroyAfterSeconds: 2_592_000,
  onDeletion: 'retain',
  adopt: true,
  tenants: { 'a@example.com': ['of-a', 'a-*'] },
  challenge: 'project-label',
  tenantKey: 'labels.team',
  verifyEverySeconds: 3600,
  deniedRetrySeconds: 0,
  jobTtlSeconds: 600,
  jobDeadlineSeconds: 120,
  repeatSeconds: 0,
  sweepSeconds: 30,
  leaseSeconds: 20,
  concurrency: 5,
  jobEnv: { SECRET_MANAGER_ENDPOINT: 'https://secrets.example.com' },
} as const;

test('every option of the adapter is a flag that the command knows', async () => {
  const { args } = workload(rendered({ adapterOptions: EVERY_OPTION }), 'pull-secret-adapter').spec
    .containers[0];
  const { flags } = parseFlags((await adapterCommand.spec()).flags, args.slice(1));
  const { adopt, concurrency, ...given } = flags as Readonly<Record<string, unknown>>;
  assert.deepEqual([adopt, concurrency, given['verify-every'], given['job-deadline']], [true, 5, 3600, 120]);
  const own = ['kubeconfig', 'context', 'log-level', 'log-format'];
  const elsewhere = [
    ...Object.keys(BROKER_FLAGS),
    'namespace',
    'image',
    'image-pull-secret',
    'service-account',
  ];
  const regional = workload(rendered({ adapterOptions: { location: '{region}' } }), 'pull-secret-adapter');
  const all = [...args, ...(regional.spec.containers[0]?.args ?? [])];
  const known = new Set(all.filter((arg) => arg.startsWith('--')).map((arg) => arg.slice(2)));
  const without = Object.keys((await adapterCommand.spec()).flags).filter(
    (name) => !known.has(name) && ![...own, ...elsewhere, 'job-federation', 'job-ca'].includes(name),
  );
  assert.deepEqual(without, [], 'flags without a field');
});

test('what the fleet says of Sentinel becomes flags that the command knows', async () => {
  const sentinelOptions = {
    rule: 'dependencies',
    dependencies: ['validation', 'dns'],
    eventType: 'cluster.look',
    labels: { tier: 'gold', 'example.com/zone': 'a' },
    pollSeconds: 10,
    maxAgeSeconds: 3600,
    debounceSeconds: 30,
    repeatLimitSeconds: 0,
  } as const;
  const objects = rendered({ sentinel: true, sentinelOptions });
  const [{ args }] = workload(objects, 'pull-secret-sentinel').spec.containers;
  const flags = args.slice(args.indexOf('--rule'));
  assert.deepEqual(
    flags.join(' '),
    '--rule dependencies --dependency validation --dependency dns --event-type cluster.look --label example.com/zone=a --label tier=gold --poll 10s --max-age 3600s --debounce 30s --repeat-limit 0s',
  );
  parseFlags((await sentinelCommand.spec()).flags, flags);
});

test('a flag is checked as its field is', async () => {
  const read = (...args: readonly string[]): unknown =>
    settingsOf(parseFlags(OPTION_FLAGS, args).flags, undefined, JOBS).jobEnv;
  assert.deepEqual(read('--job-env', 'HTTPS_PROXY=http://a=b'), { HTTPS_PROXY: 'http://a=b' });
  assert.throws(() => read('--job-env', 'TENANT_CHALLENGE='), /TENANT_CHALLENGE.*adapter sets this variable/);
  for (const wrong of ['=canary', 'canary'])
    assert.throws(
      () => read('--job-env', wrong),
      ({ message }: Error) => /must be NAME=VALUE/.test(message) && !message.includes('canary'),
    );
  assert.throws(() => read('--destroy-after', '1h'), /--destroy-after: expected 0, or 86400/);
});

test('a list of tenants that is empty is refused, and does not switch tenancy off', async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'pullwright-tenants-')), 'tenants.yaml');
  for (const text of ['', '# x', 'null']) {
    writeFileSync(path, text);
    const tenants = await tenantsOf(path);
    assert.throws(() => settingsOf({}, tenants, JOBS), {
      name: 'UsageError',
      message: 'Cannot use the options: --tenants: must not be null',
    });
  }
});

test('options of Sentinel are refused by the names that were given', () => {
  const refused: readonly (readonly [readonly string[], object, RegExp])[] = [
    [[], { message_decision: null }, /: --messages: message_decision: must not be null/],
    [[], { pollSeconds: 1, message_data: { id: 'resource.id' } }, /unknown field "pollSeconds"/],
    [['--dependency', 'dns'], {}, /: --dependency: has no effect/],
    [['--debounce', '1h'], {}, /: --debounce: --debounce \(3600\) is longer than --max-age \(1800\)/],
  ];
  for (const [args, file, message] of refused)
    assert.throws(() => sentinelSettings(parseFlags(SENTINEL_FLAGS, args).flags, file), {
      name: 'UsageError',
      message,
    });
});

test('messages of Sentinel are a file of Sentinel alone, which the command reads, and another text is another pod', async () => {
  const options = {
    messageDecision: {
      params: { seen: 'condition("Reconciled").observed_generation' },
      result: 'resource.generation > seen',
    },
    messageData: { id: 'resource.id', origin: '"europe"' },
  };
  const objects = rendered({ sentinel: true, sentinelOptions: options });
  const file = objects.find((one) => one.metadata.name === 'pull-secret-sentinel-messages');
  const { 'messages.yaml': text = '' } = (file?.['data'] ?? {}) as { readonly 'messages.yaml'?: string };
  const { decide, data } = sentinelSettings({}, parseYaml(text) as object).messages;
  const cluster = clusterDocument.parse({ id: 'a', generation: 2 });
  assert.equal(decide?.(cluster, new Date()).publish, true);
  assert.deepEqual(data(cluster, ''), { id: 'a', origin: 'europe' });
  const sentinel = workload(objects, 'pull-secret-sentinel');
  const mounted = sentinel.spec.volumes?.some(({ name }) => name === 'messages');
  assert.deepEqual(
    [mounted, workload(objects, 'pull-secret-adapter').spec.volumes?.some(({ name }) => name === 'messages')],
    [true, false],
  );
  const { flags } = parseFlags(
    (await sentinelCommand.spec()).flags,
    sentinel.spec.containers[0].args.slice(1),
  );
  assert.equal((flags as { readonly messages?: string }).messages, '/etc/pullwright/messages/messages.yaml');
  const other = rendered({
    sentinel: true,
    sentinelOptions: { ...options, messageData: { id: 'resource.id' } },
  });
  assert.notDeepEqual(workload(other, 'pull-secret-sentinel').metadata, sentinel.metadata);
});

test('the list of tenants is a file of the adapter alone, and another list is another pod', () => {
  const objects = rendered({ sentinel: true, adapterOptions: EVERY_OPTION });
  const list = objects.find((one) => one.metadata.name === 'pull-secret-adapter-tenants');
  assert.deepEqual(list?.['data'], { 'tenants.yaml': 'a@example.com:\n  - of-a\n  - a-*\n' });
  const adapter = workload(objects, 'pull-secret-adapter');
  assert.ok(adapter.spec.volumes?.some(({ name }) => name === 'tenants'));
  assert.ok(!workload(objects, 'pull-secret-sentinel').spec.volumes?.some(({ name }) => name === 'tenants'));
  const other = rendered({ adapterOptions: { tenants: { b: ['of-b'] } } });
  assert.notDeepEqual(workload(other, 'pull-secret-adapter').metadata, adapter.metadata);
});

test('what speaks of API and broker reaches adapter and Sentinel alike', async () => {
  const objects = rendered({
    sentinel: true,
    exchange: 'events',
    exchangeType: 'fanout',
    routingKey: 'k',
    createTopics: true,
    apiTokenAudience: 'hyperfleet',
    caConfigMap: 'authorities',
  });
  for (const [name, command] of [
    ['pull-secret-adapter', adapterCommand],
    ['pull-secret-sentinel', sentinelCommand],
  ] as const) {
    const { spec } = workload(objects, name);
    const [{ args, env }] = spec.containers;
    const { flags } = parseFlags((await command.spec()).flags, args.slice(1));
    const given = flags as Readonly<Record<string, unknown>>;
    assert.deepEqual(
      ['exchange', 'exchange-type', 'routing-key', 'create-topics', 'api-token-file'].map(
        (flag) => given[flag],
      ),
      ['events', 'fanout', 'k', true, '/etc/pullwright/api/token'],
    );
    assert.deepEqual(env, [{ name: 'NODE_EXTRA_CA_CERTS', value: '/etc/pullwright/ca/ca.crt' }]);
    assert.match(JSON.stringify(spec.volumes), /"audience":"hyperfleet"/);
    assert.match(JSON.stringify(spec.volumes), /"configMap":\{"name":"authorities"\}/);
  }
  const [{ args }] = workload(objects, 'pull-secret-adapter').spec.containers;
  assert.equal(args[args.indexOf('--job-ca') + 1], 'authorities');
});

test('the rights of the Jobs name the Secret that they are told to write', () => {
  const objects = rendered({ adapterOptions: { pullSecretName: 'pull' } });
  const { rules } = named(objects, 'ClusterRole', 'pullwright-pull-secret-job');
  assert.match(JSON.stringify(rules), /"resourceNames":\["pull"\]/);
});

type Bad = readonly [name: string, reason: string, section: object, says: RegExp];
const BAD: readonly Bad[] = [
  ['no identity', 'Jobs could do nothing', SECTION, /one identity/],
  [
    'two identities',
    'the second would win silently',
    { ...IDENTIFIED, jobFederation: PROVIDER },
    /one identity/,
  ],
  [
    'a provider by its short name',
    'Google refuses it only at run time',
    { ...SECTION, jobFederation: 'openshift' },
    /workloadIdentityPools/,
  ],
  ['Pub/Sub without a project', 'there is no default', { ...IDENTIFIED, broker: 'pubsub' }, /gcpProject/],
  ['a port that is none', 'named', { ...IDENTIFIED, egressPorts: [0] }, /egressPorts|>=1/],
  ...(
    [
      [{ rule: 'all' }, /rule[\s\S]*expected one of/],
      [{ dependencies: ['dns'] }, /has no effect with rule \\"reconcile\\"/],
      [{ rule: 'dependencies', dependencies: [] }, /dependencies/],
      [{ labels: { tier: "go'ld" } }, /expected letters/],
      [{ labels: { 'a=b': 'c' } }, /expected letters/],
      [{ eventType: 'a b' }, /expected letters/],
      [{ pollSeconds: 0 }, /pollSeconds/],
      [{ maxAgeSeconds: 5 }, /debounceSeconds \(10\) is longer than maxAgeSeconds \(5\)/],
      [{ debounceSeconds: 3600 }, /\(3600\) is longer than maxAgeSeconds \(1800\)/],
      [{ repeatLimitSeconds: 1.5 }, /repeatLimitSeconds/],
      [{ messageDecision: { result: 'resource.' } }, /messageDecision[\s\S]*message_decision\.result: /],
      [{ messageData: { name: 'resource.name' } }, /messageData[\s\S]*\\"id\\" is required/],
      [{ rule: 'dependencies', messageDecision: { result: 'true' } }, /expected one of them/],
    ] as const
  ).map(
    ([sentinelOptions, says]): Bad => [
      `Sentinel with ${JSON.stringify(sentinelOptions)}`,
      'the pod would end with "wrong usage", or never say anything',
      { ...IDENTIFIED, sentinel: true, sentinelOptions },
      says,
    ],
  ),
  ...(
    [
      [{ adapterOptions: { replication: 'europe' } }, /expected automatic/],
      [{ adapterOptions: { tenants: {} } }, /at least one tenant/],
      [{ adapterOptions: { tenants: { a: ['*'] } } }, /tenants/],
      [{ adapterOptions: { tenantKey: 'spec.owner' } }, /expected created_by/],
      [{ adapterOptions: { jobTtlSeconds: 5 } }, /jobTtlSeconds/],
      [{ adapterOptions: { jobEnv: { 'a=b': 'c' } } }, /jobEnv/],
      [{ adapterOptions: { jobEnv: { TENANT_CHALLENGE: '' } } }, /adapter sets this variable/],
      [{ adapterOptions: { verifyEvery: 5 } }, /verifyEvery/],
      [{ apiTokenSecret: 'a', apiTokenAudience: 'b' }, /Only one token is allowed/],
    ] as const
  ).map(
    ([more, says]): Bad => [
      JSON.stringify(more),
      'the pod would end with "wrong usage", or do something else than is meant',
      { ...IDENTIFIED, ...more },
      says,
    ],
  ),
  [
    'options of a Sentinel that is not installed',
    'they would be lost silently',
    { ...IDENTIFIED, sentinelOptions: { rule: 'reconcile' } },
    /expected sentinel: true/,
  ],
];
cases<[section: object, says: RegExp]>(test, BAD, (section, says) => {
  const { success, error } = schema.safeParse(section);
  assert.equal(success, false);
  assert.match(error?.message ?? '', says);
});
