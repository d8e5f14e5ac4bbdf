/** Values of the chart: those with which Helm makes what `synth` renders, and those that are refused. */

export type Values = Readonly<Record<string, unknown>>;
export const IMAGE: string = 'registry.example.com/team/pullwright:1.2.3';
export const ALL: Values = {
  'global-pull-secret': true,
  'pull-secret-injection': true,
  'credential-provider': { matchImages: ['quay.io', '*.example.com'] },
  verify: true,
};

export const ADAPTER: Values = {
  api: 'https://api.example.com',
  jobGoogleServiceAccount: 'pull-secret-job@project.iam.gserviceaccount.com',
};
const adapter = (more: Values): Values => ({ systems: { 'pull-secret-adapter': { ...ADAPTER, ...more } } });
const management = (systems: Values, more: Values = {}): Values => ({
  kind: 'management',
  discovery: true,
  systems,
  ...more,
});

export const EQUAL: readonly Values[] = [
  { systems: {} },
  { systems: { 'global-pull-secret': true } },
  { systems: { 'global-pull-secret': { enforce: 'deny', createConfigNamespace: true }, verify: false } },
  { systems: { 'global-pull-secret': { enforce: 'off', mode: 'observe' } }, delivery: 'reconciler' },
  { systems: ALL, monitoring: true, imagePullSecrets: ['one', 'two', 'three'], delivery: 'reconciler' },
  {
    systems: { ...ALL, verify: { schedule: '@daily', suspend: true } },
    namespace: 'registries',
    reconciler: { replicas: 3, logLevel: 'debug', memoryLimit: '1Gi' },
    imagePullSecrets: ['only'],
  },
  { systems: { 'pull-secret-injection': {} }, image: 'registry.example.com/p@sha256:' + 'a'.repeat(64) },
  { systems: { 'credential-provider': { nodeAccess: 'none', matchImages: ['quay.io'] } }, monitoring: true },
  { systems: { verify: { suspend: false } }, monitoring: true, reconciler: { replicas: 1 } },
  { systems: { 'global-pull-secret': { mode: 'own' }, 'credential-provider': { nodeAccess: 'shipped' } } },
  { systems: ALL, dashboards: true },
  { systems: { ...ALL, 'pull-secret-adapter': ADAPTER }, dashboards: true, monitoring: true },
  { systems: ALL, dashboards: false, namespace: 'registries' },
  { systems: { 'registry-overrides': true } },
  { systems: { 'registry-overrides': {}, verify: true }, dashboards: true },
  { systems: { 'registry-overrides': false, 'pull-secret-adapter': false }, dashboards: true },
  management({ 'registry-overrides': true }),
  management({
    'registry-overrides': { mode: 'own', catalogs: false, tagMirrors: false, askRegistries: true },
  }),
  management({ 'registry-overrides': { mode: 'observe', catalogs: true, askRegistries: false } }),
  management({ 'registry-overrides': { mode: 'auto', tagMirrors: true } }, { monitoring: true }),
  management({ 'global-pull-secret': true, 'registry-overrides': true, verify: true }, { dashboards: true }),
  management({ 'global-pull-secret': { mode: 'observe' } }, { delivery: 'gitops' }),
  management({ 'global-pull-secret': { enforce: 'deny' } }, { discovery: false }),
  management({ 'registry-overrides': true }, { reconciler: { replicas: 3 } }),
  management({ 'registry-overrides': true }, { monitoring: true }),
  management({ 'global-pull-secret': true }, { reconciler: { replicas: 5 }, monitoring: true }),
  management(
    { 'registry-overrides': true, 'pull-secret-adapter': { ...ADAPTER, sentinel: true }, verify: true },
    { reconciler: { replicas: 4, kubeconfigSecret: 'less' }, monitoring: true, dashboards: true },
  ),
  management({ 'pull-secret-adapter': ADAPTER }),
  adapter({}),
  adapter({ namespace: 'brokers', replicas: 1, alerts: false, api: 'https://api.example.com:6443/v1' }),
  adapter({ namespace: 'brokers', replicas: 3, sentinel: true, alerts: true }),
  adapter({ replicas: 1, sentinel: true, alerts: false }),
  adapter({
    broker: 'rabbitmq',
    brokerSecret: 'rabbit',
    exchange: 'e',
    exchangeType: 'fanout',
    routingKey: 'r',
  }),
  adapter({
    broker: 'pubsub',
    gcpProject: 'project',
    topic: 'topic',
    subscription: 'subscription',
    createTopics: true,
    googleServiceAccount: 'adapter@project.iam.gserviceaccount.com',
    sentinel: true,
  }),
  adapter({ broker: 'pubsub', gcpProject: 'project', createTopics: false }),
  adapter({ apiTokenSecret: 'token', statusMethod: 'PUT', caConfigMap: 'authorities', sentinel: true }),
  adapter({ apiTokenAudience: 'https://api.example.com', statusMethod: 'auto' }),
  {
    systems: {
      'pull-secret-adapter': {
        api: 'https://api.example.com',
        jobFederation: 'projects/1/locations/global/workloadIdentityPools/pool/providers/provider',
        caConfigMap: 'authorities',
      },
    },
    imagePullSecrets: ['one', 'two', 'three'],
  },
  adapter({ args: ['--log-level', 'debug', '--api-burst=7'] }),
  adapter({ sentinel: true, sentinelOptions: {}, adapterOptions: {}, namespace: 'brokers' }),
  adapter({
    sentinel: true,
    sentinelOptions: {
      rule: 'dependencies',
      dependencies: ['dns', 'placement', 'network'],
      eventType: 'a.b',
    },
  }),
  adapter({
    sentinel: true,
    sentinelOptions: { rule: 'reconcile', pollSeconds: 7, repeatLimitSeconds: 0 },
  }),
  adapter({
    adapterOptions: {
      adapterName: 'other',
      dependencies: ['dns'],
      managementNamespace: 'ns-{id}',
      pullSecretName: 'ps',
      gcpSecretName: '{name}',
      impersonate: 'robot@{project}.iam.gserviceaccount.com',
      passAs: 'env',
      location: 'europe-west3',
      kmsKey: 'projects/{project}/key',
      keepVersions: 0,
      previousForSeconds: 1000000,
      onDeletion: 'retain',
      adopt: true,
      challenge: 'project-label',
      tenantKey: 'labels.team',
      verifyEverySeconds: 0,
      deniedRetrySeconds: 1,
      jobTtlSeconds: 60,
      jobDeadlineSeconds: 61,
      repeatSeconds: 2,
      sweepSeconds: 3,
      leaseSeconds: 15,
      concurrency: 1000,
    },
    args: ['--one'],
  }),
  adapter({
    adapterOptions: {
      passAs: 'file',
      replication: 'user-managed:a,b',
      onDeletion: 'delete',
      adopt: false,
      challenge: 'none',
    },
  }),
];

export const REFUSED: readonly (readonly [string, Values, RegExp])[] = [
  [
    'an image without tag',
    { image: 'registry.example.com/pullwright' },
    /\/image': .*does not match pattern/,
  ],
  ['an image that is a number', { image: 5 }, /\/image': got number, want string/],
  ['an unknown key', { imagee: IMAGE }, /additional properties 'imagee' not allowed/],
  ['an unknown system', { systems: { 'global-pull-secrets': true } }, /'global-pull-secrets' not allowed/],
  ['an unknown option', { systems: { verify: { shedule: '@daily' } } }, /'shedule' not allowed/],
  ['a system that is a text', { systems: { verify: 'on' } }, /\/systems\/verify': got string/],
  ['an unknown delivery', { delivery: 'git' }, /\/delivery': value must be one of 'gitops', 'reconciler'/],
  ['too many replicas', { reconciler: { replicas: 9 } }, /\/reconciler\/replicas'/],
  ['an unknown kind', { kind: 'hosted' }, /\/kind': value must be one of 'standalone', 'management'/],
  ['dashboards that are a text', { dashboards: 'on' }, /\/dashboards': got string, want boolean/],
  ['discovery in a stand-alone cluster', { discovery: true }, /discovery: only for kind "management"/],
  [
    'a system that is not for a management cluster',
    management({ 'pull-secret-injection': true }),
    /systems\.pull-secret-injection: not for a management cluster/,
  ],
  [
    'an unknown mode',
    { systems: { 'registry-overrides': { mode: 'force' } } },
    /\/systems\/registry-overrides\/mode': value must be one of 'auto', 'own', 'observe'/,
  ],
  [
    'mirror sets',
    { systems: { 'registry-overrides': { mirrorSets: [] } } },
    /additional properties 'mirrorSets' not allowed/,
  ],
  [
    'an adapter without its API, by true',
    { systems: { 'pull-secret-adapter': true } },
    /systems\.pull-secret-adapter\.api: missing, expected a text/,
  ],
  [
    'an adapter without its API, as a map',
    { systems: { 'pull-secret-adapter': { jobGoogleServiceAccount: 'a@b' } } },
    /\/systems\/pull-secret-adapter': missing property 'api'/,
  ],
  ['an API on a port of its own', adapter({ api: 'https://api.example.com:8443' }), /\/api': .*pattern/],
  ['an API without TLS', adapter({ api: 'http://api.example.com' }), /\/api': .*pattern/],
  ['an empty text', adapter({ routingKey: '' }), /\/routingKey': minLength: got 0, want 1/],
  [
    'Jobs without an identity',
    { systems: { 'pull-secret-adapter': { api: 'https://api.example.com' } } },
    /the Jobs need one identity: expected jobGoogleServiceAccount or jobFederation/,
  ],
  [
    'Jobs with two identities',
    adapter({ jobFederation: 'projects/1/locations/global/workloadIdentityPools/pool/providers/provider' }),
    /the Jobs need one identity/,
  ],
  ['Pub/Sub without a project', adapter({ broker: 'pubsub' }), /gcpProject: .*needs its project/],
  [
    'two tokens for the API',
    adapter({ apiTokenSecret: 'token', apiTokenAudience: 'audience' }),
    /one token is enough/,
  ],
  [
    'options of a Sentinel that is not installed',
    adapter({ sentinelOptions: { pollSeconds: 7 } }),
    /sentinel is not installed: expected sentinel: true/,
  ],
  [
    'dependencies with the rule that has none',
    adapter({ sentinel: true, sentinelOptions: { dependencies: ['dns'] } }),
    /has no effect with rule "reconcile"/,
  ],
  [
    'a location with a replication',
    adapter({ adapterOptions: { location: 'europe-west3', replication: 'automatic' } }),
    /has no effect on regional secrets/,
  ],
  [
    'a number out of bounds',
    adapter({ adapterOptions: { jobTtlSeconds: 1 } }),
    /\/jobTtlSeconds': minimum: got 1, want 60/,
  ],
  [
    'an option that the chart has no value for',
    { systems: { 'pull-secret-injection': { profiles: [] } } },
    /'profiles' not allowed/,
  ],
];
