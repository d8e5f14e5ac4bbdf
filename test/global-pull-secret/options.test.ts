/** What `reconcile --config` refuses of the options of this system, and what it says. Nothing wrong reaches a DaemonSet. */
import assert from 'node:assert/strict';
import { parseOptions } from '../../runtime/global-pull-secret/options.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('options of the global pull secret');

interface Row extends Case {
  readonly agent: unknown;
  /** What is said, without the name of the option; absent: it is taken. */
  readonly wanted?: string;
}

const row = (field: string, value: unknown, wanted?: string): Row => ({
  name: `${field}: ${JSON.stringify(value)}`,
  reason: wanted === undefined ? 'it is as Kubernetes or the agent takes it' : `it must be ${wanted}`,
  agent: { [field]: value },
  ...(wanted === undefined ? {} : { wanted: `agent.${field}: must be ${wanted}` }),
});

const FLAG = 'true or false';
const COUNT = 'a number of at least 1, or a share such as "10%"';
const RESOURCES = 'requests and limits, each a map such as {memory: 64Mi}';
const TOLERATIONS =
  'a list of tolerations, each with key, operator (Exists or Equal), value and effect as Kubernetes has them';
const LABELS = 'a list of maps of labels, none of them empty';
const METRICS = 'a map with tlsSecret, the name of a Secret';

const ROWS: readonly Row[] = [
  row('image', '', 'a text'),
  row('image', 7, 'a text'),
  row('imagePullSecrets', ['a']),
  row('imagePullSecrets', 'a', 'a list of names'),
  row('imagePullSecrets', [''], 'a list of names'),
  row('shape', 'round', 'one of pullwright, upstream'),
  row('security', 'none', 'one of privileged, restricted'),
  row('seLinuxType', {}, 'a text'),
  row('foreign', true, 'one of drop, keep'),
  row('restart', 'sometimes', 'one of on-change, on-removal, never'),
  row('restart', 'toString', 'one of on-change, on-removal, never'),
  row('restartWindow', 'auto'),
  row('restartWindow', '1m30s'),
  row('restartWindow', '-5m', 'auto, or a duration such as 5m'),
  row('restartWindow', 300, 'auto, or a duration such as 5m'),
  row('watch', 'yes', FLAG),
  row('report', 'no', FLAG),
  row('report', null, FLAG),
  row('janitor', 1, FLAG),
  row('maxUnavailable', '100%'),
  row('maxUnavailable', '101%', COUNT),
  row('maxUnavailable', 0, COUNT),
  row('maxUnavailable', '10', COUNT),
  row('priorityClassName', '', 'a text'),
  row('resources', { requests: { memory: '64Mi' } }),
  row('resources', { request: {} }, RESOURCES),
  row('resources', { limits: { cpu: 1 } }, RESOURCES),
  row('tolerations', [{ operator: 'Exists' }]),
  row('tolerations', [{ operator: 'exists' }], TOLERATIONS),
  row('tolerations', [{ tolerationSeconds: 5 }], TOLERATIONS),
  row('alsoNodes', [{ a: 'b' }]),
  row('alsoNodes', [{}], LABELS),
  row('alsoNodes', { a: 'b' }, LABELS),
  row('metrics', { tlsSecret: 'a' }),
  row('metrics', {}, METRICS),
  row('metrics', { tlsSecret: 'a', port: 1 }, METRICS),
  row('healthPort', 65_536, 'a whole number from 1 to 65535'),
  row('logLevel', 'loud', 'one of debug, info, warn, error'),
  {
    name: 'an option that there is not',
    reason: 'a typing error would be a default',
    agent: { restarts: 'never' },
    wanted: 'agent.restarts: no such option, expected one of image, ',
  },
  {
    name: 'a name that every object has',
    reason: 'it is no option',
    agent: { constructor: 'a' },
    wanted: 'agent.constructor: no such option',
  },
  {
    name: "upstream's shape with our image",
    reason: 'our image has no control-plane-operator',
    agent: { shape: 'upstream' },
    wanted: 'agent.image: shape "upstream" needs the image of HyperShift',
  },
  { name: 'a list', reason: 'wrong shape', agent: [], wanted: 'agent: must be a map of options' },
];

table(test, ROWS, ({ agent, wanted }) => {
  const parse = () => parseOptions({ agent });
  if (wanted === undefined) {
    assert.ok(parse().agent.image.length > 0);
    return;
  }
  assert.throws(parse, (error: Error) => {
    assert.equal(error.name, 'UsageError');
    assert.ok(
      error.message.startsWith(`Cannot use the options of global-pull-secret: ${wanted}`),
      error.message,
    );
    return true;
  });
});

test('all mistakes are named at once, those of a single cluster too', () => {
  assert.throws(
    () => parseOptions({ mode: 'take', removals: { share: 2 }, agent: { restart: 'x', watch: 1 } }),
    /agent\.restart: .*; agent\.watch: .*; mode: must be one of auto, own, observe; removals\.share: must be a number from 0 to 1$/,
  );
  assert.throws(
    () => parseOptions({ clusters: { 'clusters/a': { agent: { report: 'x' } } } }),
    /agent\.report: must be true or false/,
  );
});

test.run();
