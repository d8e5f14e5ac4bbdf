/** Options of this system that `reconcile --config` rejects, and the messages. No invalid option reaches a DaemonSet. */
import assert from 'node:assert/strict';
import { parseOptions } from '../../runtime/global-pull-secret/options.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Row extends Case {
  readonly agent: unknown;
  /** Error without the name of the option; absent: the option is valid. */
  readonly wanted?: string;
}

const row = (field: string, value: unknown, wanted?: string): Row => ({
  name: `${field}: ${JSON.stringify(value)}`,
  reason: wanted === undefined ? 'it is as Kubernetes or the agent takes it' : wanted,
  agent: { [field]: value },
  ...(wanted === undefined ? {} : { wanted: `agent.${field}${wanted}` }),
});

const FLAG = ': invalid value';
const COUNT = ': ';

const ROWS: readonly Row[] = [
  row('image', '', ': expected an image'),
  row('image', 7, ': invalid value 7: must be a string'),
  row('imagePullSecrets', ['a']),
  row('imagePullSecrets', 'a', ': invalid value "a": must be a list'),
  row('imagePullSecrets', [''], '[0]: expected lower-case'),
  row('shape', 'round', ': "round" is none of pullwright, upstream'),
  row('security', 'none', ': "none" is none of privileged, restricted'),
  row('seLinuxType', {}, ': invalid value of type object: must be a string'),
  row('foreign', true, ': true is none of drop, keep'),
  row('restart', 'sometimes', ': "sometimes" is none of on-change, on-removal, never'),
  row('restart', 'toString', ': "toString" is none of on-change, on-removal, never'),
  row('restartWindow', 'auto'),
  row('restartWindow', '1m30s'),
  row('restartWindow', '-5m', ': '),
  row('restartWindow', 300, ': '),
  row('watch', 'yes', FLAG),
  row('report', 'no', FLAG),
  row('report', null, ': must not be null'),
  row('janitor', 1, FLAG),
  row('maxUnavailable', '100%'),
  row('maxUnavailable', '101%', COUNT),
  row('maxUnavailable', 0, COUNT),
  row('maxUnavailable', '0%', COUNT),
  row('maxUnavailable', '10', COUNT),
  row('priorityClassName', '', ': expected lower-case'),
  row('resources', { requests: { memory: '64Mi' } }),
  row('resources', { request: {} }, '.request: unknown field; must be one of "requests", "limits"'),
  row('resources', { limits: { cpu: 1 } }, '.limits["cpu"]: invalid value 1: must be a string'),
  row('tolerations', [{ operator: 'Exists' }]),
  row('tolerations', [{ operator: 'exists' }], '[0].operator: "exists" is none of Exists, Equal'),
  row('tolerations', [{ tolerationSeconds: 5 }], '[0].tolerationSeconds: unknown field'),
  row('alsoNodes', [{ a: 'b' }]),
  row('alsoNodes', [{}], '[0]: expected at least one label'),
  row('alsoNodes', { a: 'b' }, ': invalid value of type object: must be a list'),
  row('metrics', { tlsSecret: 'a' }),
  row('metrics', {}, '.tlsSecret: required value'),
  row('metrics', { tlsSecret: 'a', port: 1 }, '.port: unknown field'),
  row('healthPort', 65_536, ': must be at most 65535'),
  row('logLevel', 'loud', ': "loud" is none of debug, info, warn, error'),
  {
    name: 'an option that there is not',
    reason: 'a typing error would be a default',
    agent: { restarts: 'never' },
    wanted: 'agent.restarts: unknown field; must be one of "image", ',
  },
  {
    name: 'a name that every object has',
    reason: 'it is no option',
    agent: { constructor: 'a' },
    wanted: 'agent.constructor: unknown field',
  },
  {
    name: "upstream's shape with our image",
    reason: 'our image has no control-plane-operator',
    agent: { shape: 'upstream' },
    wanted: 'agent.image: shape "upstream" requires a HyperShift image',
  },
  {
    name: 'a list',
    reason: 'wrong shape',
    agent: [],
    wanted: 'agent: invalid value of type list: must be an object',
  },
];

table(test, ROWS, ({ agent, wanted }) => {
  const parse = () => parseOptions({ agent });
  if (wanted === undefined) {
    assert.ok(parse()('local').agent.image.length > 0);
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
    /removals\.share: must be at most 1; .*mode: "take" is none of auto, own, observe; .*agent\.restart: .*; agent\.watch: /,
  );
  assert.throws(
    () => parseOptions({ clusters: { 'clusters/a': { agent: { report: 'x' } } } }),
    /clusters\["clusters\/a"\]\.agent\.report: invalid value "x": must be a boolean/,
  );
  assert.throws(() => parseOptions({ clusters: { a: {} } }), /clusters\["a"\]: .* <namespace>\/<name>/);
});
