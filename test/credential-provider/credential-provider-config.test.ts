/** What the kubelet says to its own file; compared with the kubelet on random files in test/oracle/kubernetes. */
import assert from 'node:assert/strict';
import { kubeletRefusal } from '../../runtime/credential-provider/config.ts';
import { parseYaml } from '../../runtime/kube/yaml.ts';
import { table, test } from '../support/suite.ts';

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
