/** What `reconcile --config` refuses of the options of this system, and what it says. Nothing wrong reaches a DaemonSet. */
import assert from 'node:assert/strict';
import { agentDaemonSet } from '../../charts/global-pull-secret/agent.ts';
import { parseOptions } from '../../runtime/global-pull-secret/reconciler/options.ts';
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
  row('restartSlots', 0, 'a whole number from 1 to 100'),
  row('restartSlots', 2.5, 'a whole number from 1 to 100'),
  row('restartSlots', '2', 'a whole number from 1 to 100'),
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

const CANARIES: readonly (readonly [options: object, wanted: RegExp])[] = [
  [{ canary: true }, /canary: must be a map of poolLabel, probe and within$/],
  [{ canary: { poolLabel: '' } }, /canary\.poolLabel: must be the key of a label$/],
  [{ canary: { pool: 'a' } }, /canary\.pool: no such option, expected one of poolLabel, probe, within$/],
  [{ canary: { probe: 'quay.io/a/b:1' } }, /canary\.probe: must be a list of 1 to 10 images with their reg/],
  [{ canary: { probe: [] } }, /canary\.probe: must be a list/],
  [
    { canary: { probe: ['nginx:1'] } },
    /canary\.probe: must be a list of 1 to 10 images with their registries/,
  ],
  [{ canary: { probe: ['quay.io/UPPER'] } }, /canary\.probe: must be a list/],
  [{ canary: { probe: [1] } }, /canary\.probe: must be a list/],
  [{ canary: { within: 600 } }, /canary\.within: must be a duration of at least 1m, such as 10m$/],
  [{ canary: { within: '1s' } }, /canary\.within: must be a duration of at least 1m/],
  [{ canary: {}, agent: { report: false } }, /canary: must be agent\.report, by which it is known/],
];
for (const [options, wanted] of CANARIES)
  test(JSON.stringify(options), () =>
    assert.throws(() => parseOptions({ ...options }), { name: 'UsageError', message: wanted }),
  );

test('a canary is one pool, or one for each value of a label', () => {
  assert.deepEqual(parseOptions({ canary: {} }).canary, {});
  assert.deepEqual(parseOptions({ canary: { poolLabel: 'a/b' } }).canary, { poolLabel: 'a/b' });
});

test('images of a canary let its agents see the mirrors of their nodes', () => {
  const { canary, agent } = parseOptions({ canary: { probe: ['quay.io/acme/web:1'], within: '5m' } });
  assert.deepEqual(canary, { probe: ['quay.io/acme/web:1'], withinMs: 300_000 });
  assert.equal(agent.probes, true);
  const text = JSON.stringify(agentDaemonSet(agent));
  assert.match(text, /--node-etc=\/host\/etc/);
  assert.match(text, /"mountPath":"\/host\/etc","readOnly":true/);
  assert.doesNotMatch(JSON.stringify(agentDaemonSet(parseOptions({ canary: {} }).agent)), /host\/etc/);
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
