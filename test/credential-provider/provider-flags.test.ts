/** Every option of the executable: as a field, as an argument in the kubelet's file, and as the file beside the executable. */
import assert from 'node:assert/strict';
import { installerObjects } from '../../charts/credential-provider/installer.ts';
import { mergeCredentialProviderConfig } from '../../runtime/credential-provider/merge.ts';
import { schema } from '../../runtime/credential-provider/options.ts';
import {
  PROVIDER_FLAGS,
  type ProviderFlagKind,
  type ProviderSettings,
  parseArguments,
  providerArgs,
  providerConfigText,
} from '../../runtime/credential-provider/provider-flags.ts';
import { test } from '../support/suite.ts';

/** Values that differ from the defaults. */
const VALUE: Readonly<Record<ProviderFlagKind, unknown>> = {
  path: '/some/where',
  paths: ['/one', '/two'],
  secrets: 'named',
  boolean: false,
  milliseconds: 2345,
};
const settings = {
  ...Object.fromEntries(Object.entries(PROVIDER_FLAGS).map(([field, { kind }]) => [field, VALUE[kind]])),
  verbose: true,
} as Required<ProviderSettings>;

const none = (): string => {
  throw Object.assign(new Error('none'), { code: 'ENOENT' });
};

test('each reaches the executable by arguments and by the file beside it', () => {
  const { options } = parseArguments(providerArgs(settings), '/root', none, '/opt/c.json');
  const beside = parseArguments([], '/root', () => providerConfigText(settings), '/opt/c.json').options;
  for (const [field, value] of Object.entries(settings)) {
    assert.deepEqual(options[field as keyof ProviderSettings], value, field);
    assert.deepEqual(beside[field as keyof ProviderSettings], value, field);
  }
  const both = parseArguments(['--secrets=list'], '/root', () => providerConfigText(settings), '/opt/c.json');
  assert.deepEqual([both.options.secrets, both.options.budgetMs], ['list', 2345]);
});

test('each is a field of the section, and goes through installer and kubelet file unchanged', () => {
  assert.deepEqual(schema.parse({ provider: settings }).provider, settings);
  const daemonSet = installerObjects({ image: 'i', provider: settings }).find(
    ({ kind }) => kind === 'DaemonSet',
  );
  const text = JSON.stringify(daemonSet);
  const args = providerArgs(settings);
  for (const arg of args) assert.ok(text.includes(JSON.stringify(`--provider-arg=${arg}`)), arg);
  const { config } = mergeCredentialProviderConfig(undefined, ['docker.io'], { args });
  assert.deepEqual(config?.providers?.[0]?.args, args);
});

test('a file beside the executable that is wrong is named', () => {
  const read = (text: string) => () => parseArguments([], undefined, () => text, '/opt/c.json');
  assert.throws(read('{"secret":"named"}'), /Unknown flag "--secret"/);
  assert.throws(read('nope'), /Cannot read the config file "\/opt\/c\.json": it is not JSON/);
  assert.throws(read('{"budget-ms":50}'), /must be a whole number from 100 to 55000/);
});
