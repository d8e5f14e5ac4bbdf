/** What the kubelet says to its own file; compared with the kubelet on random files in test/oracle/kubernetes. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { kubeletRefusal } from '../../runtime/credential-provider/config.ts';
import { parseReconcilerOptions } from '../../runtime/credential-provider/options.ts';
import { credentialProviderReconciler } from '../../runtime/credential-provider/reconciler/reconcile.ts';
import { parseYaml } from '../../runtime/kube/yaml.ts';
import { table, test } from '../support/suite.ts';
import { filesOf } from './support/machine-config-files.ts';
import { clusterObjects, worldOf } from './support/world-double.ts';

const HEAD = 'apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n';

/** A good file, with lines added to its provider and to its token attributes. */
function fileWith(provider: string, token: string): string {
  const good = [
    'providers:',
    '- name: a',
    '  matchImages: [a.io]',
    '  apiVersion: credentialprovider.kubelet.k8s.io/v1',
  ];
  if (!provider.includes('defaultCacheDuration')) good.push('  defaultCacheDuration: 1s');
  if (provider !== '') good.push(`  ${provider}`);
  if (token !== '') good.push('  tokenAttributes:', ...token.split('; ').map((line) => `    ${line}`));
  return `${HEAD}${good.join('\n')}\n`;
}

const GOOD_TOKEN = 'serviceAccountTokenAudience: x; cacheType: Token; requireServiceAccount: true';

const ROWS = [
  { name: 'a good file', reason: 'nothing to say', wanted: undefined },
  {
    name: 'an annotation key with capitals in its prefix',
    reason: 'the kubelet judges it in lower case',
    token: `${GOOD_TOKEN}; requiredServiceAccountAnnotationKeys: [X.io/A]`,
    wanted: undefined,
  },
  {
    name: 'an annotation key without a name',
    reason: 'every fault of the key is told',
    token: `${GOOD_TOKEN}; optionalServiceAccountAnnotationKeys: [x.io/]`,
    wanted: /^\[.*"x\.io\/": name part must be non-empty, .*"x\.io\/": name part must consist of/,
  },
  {
    name: 'token attributes without anything',
    reason: 'in the order of the kubelet, with the words that it has since 1.34',
    token: 'cacheType: ""',
    wanted:
      /^\[providers\.tokenAttributes\.serviceAccountTokenAudience: Required value, providers\.tokenAttributes\.requireServiceAccount: Required value, providers\.tokenAttributes\.cacheType: Required value: .* Supported values are: ServiceAccount, Token\]$/,
  },
  {
    name: 'an environment value of yes',
    reason: 'a boolean to the kubelet, which does not start',
    provider: 'env: [{name: A, value: yes}]',
    wanted: /cannot unmarshal boolean into field providers\.env\.value/,
  },
  {
    name: 'requireServiceAccount: on',
    reason: 'the same the other way round: a boolean is wanted, and it is one',
    token: 'serviceAccountTokenAudience: x; cacheType: Token; requireServiceAccount: on',
    wanted: undefined,
  },
  {
    name: 'several unknown fields',
    reason: 'all are told, sorted as YAML reaches the decoder',
    provider: 'zone: 1\n  about: 2',
    wanted:
      /strict decoding error: unknown field "providers\[0\]\.about", unknown field "providers\[0\]\.zone"$/,
  },
  {
    name: 'an unknown field before a wrong type',
    reason: 'the wrong type ends the reading first',
    provider: 'about: 2\n  args: 7',
    wanted: /cannot unmarshal number into field providers\.args/,
  },
  {
    name: 'a duration of 1,141 years',
    reason: 'longer than Go can count',
    provider: 'defaultCacheDuration: 9999999h',
    wanted: /time: invalid duration/,
  },
] as const;
table(test, ROWS, (row) => {
  const said = kubeletRefusal(
    fileWith('provider' in row ? row.provider : '', 'token' in row ? row.token : ''),
    parseYaml,
  );
  if (row.wanted === undefined) assert.equal(said, undefined);
  else assert.match(said ?? '', row.wanted);
});

test('a file that says KIND is told about that field', () => {
  const text = '{"apiVersion":"kubelet.config.k8s.io/v1","KIND":"CredentialProviderConfig"}';
  assert.match(kubeletRefusal(text, parseYaml) ?? '', /unknown field "KIND"$/);
});

test('a file without apiVersion is told about that', () => {
  assert.match(kubeletRefusal('kind: CredentialProviderConfig', parseYaml) ?? '', /'apiVersion' is missing/);
});

// `spec.matchImages` of any shape, offline: what is refused is named, and the good entries are rendered all the same.

const reconciler = credentialProviderReconciler(parseReconcilerOptions({}));

function reconcile(spec: unknown): {
  readonly text: string;
  readonly problems: readonly string[];
  readonly status: string;
} {
  const objects = clusterObjects({ platform: 'AWS', pools: ['worker'] }).map((object) =>
    object.kind === 'CRIOCredentialProviderConfig' ? { ...object, spec } : object,
  );
  const result = reconciler.reconcile(worldOf(objects), { scope: 'local', name: 'cluster' });
  const [config] = (result.apply ?? []).flatMap((one) =>
    'object' in one && one.object.kind === 'MachineConfig' ? [one.object] : [],
  );
  return {
    text: config === undefined ? '' : [...filesOf(config).values()].join(),
    problems: (result.errors ?? []).map(
      ({ retryPolicy, code, message }) => `${retryPolicy} ${code} ${message}`,
    ),
    status: JSON.stringify(result.status),
  };
}

/** What is said of a list, and whether docker.io is rendered all the same. */
const BAD: Readonly<Record<string, readonly [matchImages: unknown, says: RegExp, isRendered?: false]>> = {
  'a text instead of a list': ['docker.io', /spec\.matchImages: .*must be a list/, false],
  'a number among the entries': [['docker.io', 5000], /spec\.matchImages\[1\]: .*must be a string/],
  'a dash without a value': [[null, 'docker.io'], /spec\.matchImages\[0\]: must not be null/],
  'upper case': [['docker.io', 'Quay.io'], /\[1\]: invalid value "Quay\.io": must be a host in lower case/],
  'a glob that the kubelet would take': [['docker.io', 'a[0-9].io'], /"a\[0-9\]\.io": must be a host/],
  'the same twice': [['docker.io', 'docker.io'], /spec\.matchImages: duplicate value: "docker\.io"/],
  'a thousand entries': [
    ['docker.io', ...Array.from({ length: 999 }, (_, at) => `r${at}.example.com`)],
    /too many: 1000: must have at most 50 items/,
  ],
};
const bad = Object.entries(BAD).map(([name, [matchImages, says, isRendered = true]]) => ({
  name,
  reason: 'the API server would refuse it',
  spec: { matchImages },
  says,
  isRendered,
}));
table(test, bad, ({ spec, says, isRendered }) => {
  const { text, problems, status } = reconcile(spec);
  assert.equal(problems.length, 1);
  assert.match(
    problems[0] ?? '',
    /^terminal RefusedByDefinition Cannot apply "CRIOCredentialProviderConfig\/cluster"/,
  );
  assert.match(problems[0] ?? '', says);
  assert.equal(text.includes('- docker.io'), isRendered);
  assert.match(status, /Invalid \\"spec\.matchImages(?:\[\d\])?\\": /);
});

test('any other spec is taken without a failure', () => {
  fc.assert(
    fc.property(fc.anything(), fc.array(fc.anything()), (spec, matchImages) => {
      assert.equal(typeof reconcile(spec).status, 'string');
      assert.equal(typeof reconcile({ matchImages }).status, 'string');
    }),
    { numRuns: 200 },
  );
});
