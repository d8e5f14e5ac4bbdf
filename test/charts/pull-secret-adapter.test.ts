/** What the adapter's section of a fleet renders, and the Job that the adapter makes: whole in golden files, promises one by one. */
import assert from 'node:assert/strict';
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
import { type PullSecretJobInput, pullSecretJob } from '../../runtime/pull-secret-adapter/objects.ts';
import { FAIL_JOB_EXIT_CODES } from '../../runtime/pull-secret-adapter/outcome.ts';
import { command as sentinelCommand } from '../../runtime/pull-secret-adapter/sentinel/command.ts';
import { golden } from '../support/golden.ts';
import { test } from '../support/suite.ts';

const PROVIDER = 'projects/123/locations/global/workloadIdentityPools/fleet/providers/openshift';

const BASE: AdapterInstallation = {
  namespace: 'hyperfleet-system',
  image: 'registry.example.com/pullwright:0.1.0',
  api: 'https://hyperfleet.example.com:8000',
  broker: 'rabbitmq',
  brokerSecret: 'pull-secret-adapter-broker',
  topic: 'hyperfleet-clusters',
  subscription: 'pullsecret',
  replicas: 2,
  jobGoogleServiceAccount: 'pull-secrets@example-project.iam.gserviceaccount.com',
  sentinel: true,
  args: [],
  alerts: true,
};

const SECTION = { api: 'https://hyperfleet.example.com' };
const CLUSTER: ClusterContext = {
  name: 'hub',
  kind: 'management',
  delivery: 'gitops',
  namespace: 'pullwright-system',
  image: BASE.image,
  hosted: [],
  discovery: false,
};
const { jobGoogleServiceAccount: _account, brokerSecret: _secret, ...REST } = BASE;
const PUBSUB: AdapterInstallation = {
  ...REST,
  broker: 'pubsub',
  gcpProject: 'example-project',
  googleServiceAccount: 'events@example-project.iam.gserviceaccount.com',
  jobFederation: PROVIDER,
  replicas: 1,
  sentinel: false,
  alerts: false,
  egressPorts: [3128],
};

const JOB: PullSecretJobInput = {
  name: 'pullsecret-cls-123-gen1',
  namespace: 'hyperfleet-system',
  labels: { 'hyperfleet.io/cluster-id': 'cls-123' },
  annotations: { 'hyperfleet.io/generation': '1' },
  image: 'registry.example.com/pullwright:0.1.0',
  serviceAccount: 'pullsecret-adapter-job',
  needsApiServer: true,
  env: { CLUSTER_ID: 'cls-123', GCP_PROJECT_ID: 'cust-proj' },
  dataSecret: 'cluster-cls-123-pullsecret-data',
  passAs: 'file',
  ttlSeconds: 3600,
  deadlineSeconds: 310,
  failJobExitCodes: FAIL_JOB_EXIT_CODES,
};

function yaml(objects: readonly KubeObject[]): string {
  return objects
    .map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false }))
    .join('---\n');
}

function named(objects: readonly KubeObject[], kind: string, name: string): KubeObject {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  assert.ok(found, `${kind}/${name} is not rendered`);
  return found;
}

function containerOf(object: KubeObject): { readonly args: readonly string[] } {
  const { template } = object.spec as {
    template: { spec: { containers: [{ args: readonly string[] }] } };
  };
  return template.spec.containers[0];
}

test('RabbitMQ, Sentinel and Workload Identity', () =>
  golden('pull-secret-adapter/rabbitmq.yaml', yaml(adapterInstallation(BASE))));

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
  const section = schema.parse({
    ...SECTION,
    jobGoogleServiceAccount: 'a@b',
    sentinel: true,
    sentinelOptions,
  });
  const objects = pullSecretAdapterSystem.objects(section, CLUSTER);
  const { args } = containerOf(named(objects, 'Deployment', 'pull-secret-sentinel'));
  const flags = args.slice(args.indexOf('--rule'));
  assert.deepEqual(
    flags.join(' '),
    '--rule dependencies --dependency validation --dependency dns --event-type cluster.look --label example.com/zone=a --label tier=gold --poll 10s --max-age 3600s --debounce 30s --repeat-limit 0s',
  );
  parseFlags((await sentinelCommand.spec()).flags, flags);
});

test('the token of the API reaches adapter and Sentinel alike', () => {
  const objects = adapterInstallation({ ...BASE, apiTokenSecret: 'hyperfleet-token' });
  for (const name of ['pull-secret-adapter', 'pull-secret-sentinel']) {
    const text = JSON.stringify(named(objects, 'Deployment', name));
    assert.match(text, /"--api-token-file","\/etc\/pullwright\/api\/token"/);
    assert.match(text, /"mountPath":"\/etc\/pullwright\/api"/);
    assert.match(text, /"secretName":"hyperfleet-token"/);
  }
});

test('Pub/Sub and federation', () =>
  golden('pull-secret-adapter/pubsub.yaml', yaml(adapterInstallation(PUBSUB))));

test('the Job: from a file, from the environment, with federation and authorities, for a deletion', () => {
  const { dataSecret: _none, ...deletion } = JOB;
  const trusting = { ...JOB, federation: PROVIDER, authorities: 'authorities' };
  const jobs = [JOB, { ...JOB, passAs: 'env' as const }, trusting, deletion];
  golden('pull-secret-adapter/jobs.yaml', yaml(jobs.map(pullSecretJob)));
});

test('the account of the Jobs carries its Google account, and with federation a configuration instead', () => {
  const annotations = { 'iam.gke.io/gcp-service-account': BASE.jobGoogleServiceAccount };
  const account = named(adapterInstallation(BASE), 'ServiceAccount', 'pullsecret-adapter-job');
  assert.deepEqual(account.metadata.annotations, annotations);
  const objects = adapterInstallation(PUBSUB);
  assert.equal(named(objects, 'ServiceAccount', 'pullsecret-adapter-job').metadata.annotations, undefined);
  const config = named(objects, 'ConfigMap', 'pullsecret-adapter-job-credentials')['data'] as Record<
    string,
    string
  >;
  const credentials = JSON.parse(config['credentials.json'] ?? '') as { credential_source: { file: string } };
  const job = JSON.stringify(pullSecretJob({ ...JOB, federation: PROVIDER }));
  const [folder = ''] = /^.*(?=\/token$)/.exec(credentials.credential_source.file) ?? [];
  assert.ok(job.includes(`"mountPath":"${folder}"`), 'the token is where the configuration looks for it');
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

test('no pod names a user, so that OpenShift can give it one; none may gain a right', () => {
  const pods = [...adapterInstallation(BASE), pullSecretJob(JOB)]
    .map((object) => (object.spec as { template?: { spec?: object } } | undefined)?.template?.spec)
    .filter((spec) => spec !== undefined);
  assert.equal(pods.length, 3);
  for (const pod of pods) {
    const text = JSON.stringify(pod);
    assert.doesNotMatch(text, /runAsUser|fsGroup|"privileged":true/);
    for (const promise of [
      /"runAsNonRoot":true/,
      /"readOnlyRootFilesystem":true/,
      /"drop":\["ALL"\]/,
      /"RuntimeDefault"/,
    ])
      assert.match(text, promise);
  }
});

test('a Job fails at once on each code that a person must act on', () => {
  const text = JSON.stringify(pullSecretJob(JOB));
  assert.match(text, /"onExitCodes":\{"containerName":"job","operator":"In","values":\[65,73,77,78\]\}/);
});
