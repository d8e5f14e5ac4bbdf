/** The options of the node agent as they stand in the configuration of `reconcile`: each is checked before a DaemonSet has it. */

import type { AgentOptions } from '../../../charts/global-pull-secret/objects.ts';
import { parseGoDuration } from '../../rules/go/duration.ts';
import { isRecord } from '../../rules/record.ts';

type Wanted = readonly [test: (value: unknown) => boolean, wanted: string];

const oneOf = (...names: readonly string[]): Wanted => [
  (value) => names.includes(value as string),
  `one of ${names.join(', ')}`,
];
const whole = (from: number, to: number): Wanted => [
  (value) => Number.isInteger(value) && (value as number) >= from && (value as number) <= to,
  `a whole number from ${from} to ${to}`,
];
const TEXT: Wanted = [(value) => typeof value === 'string' && value !== '', 'a text'];
const FLAG: Wanted = [(value) => typeof value === 'boolean', 'true or false'];
const MAP: Wanted = [(value) => isRecord(value), 'a map'];
const NAMES: Wanted = [
  (value) => Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== ''),
  'a list of names',
];
const DURATION: Wanted = [
  (value) => typeof value === 'string' && (parseGoDuration(value) ?? -1) >= 0,
  'a duration, such as 5m',
];
const WINDOW: Wanted = [(value) => value === 'auto' || DURATION[0](value), 'auto, or a duration such as 5m'];
const COUNT: Wanted = [
  (value) =>
    (Number.isInteger(value) && (value as number) >= 1) ||
    (typeof value === 'string' && /^(100|[1-9]?\d)%$/.test(value)),
  'a number of at least 1, or a share such as "10%"',
];

/** Every element of a list, every value of a map; what is wanted is said of the whole. */
const every = (test: (value: unknown) => boolean, value: readonly unknown[]): boolean => value.every(test);
const isText = (value: unknown): boolean => typeof value === 'string';
const isMap = (value: unknown): value is Readonly<Record<string, unknown>> => MAP[0](value);
const onlyFields = (value: unknown, fields: Readonly<Record<string, (one: unknown) => boolean>>): boolean =>
  isMap(value) &&
  Object.entries(value).every(([name, one]) => Object.hasOwn(fields, name) && fields[name]?.(one) === true);
const isTextMap = (value: unknown): boolean => isMap(value) && every(isText, Object.values(value));

const RESOURCES: Wanted = [
  (value) => onlyFields(value, { requests: isTextMap, limits: isTextMap }),
  'requests and limits, each a map such as {memory: 64Mi}',
];
const TOLERATIONS: Wanted = [
  (value) =>
    Array.isArray(value) &&
    every(
      (one) =>
        onlyFields(one, {
          key: isText,
          operator: (operator) => ['Exists', 'Equal'].includes(operator as string),
          value: isText,
          effect: (effect) => ['NoSchedule', 'PreferNoSchedule', 'NoExecute'].includes(effect as string),
        }),
      value,
    ),
  'a list of tolerations, each with key, operator (Exists or Equal), value and effect as Kubernetes has them',
];
const LABEL_MAPS: Wanted = [
  (value) =>
    Array.isArray(value) && every((one) => isTextMap(one) && Object.keys(one as object).length > 0, value),
  'a list of maps of labels, none of them empty',
];
const METRICS: Wanted = [
  (value) => onlyFields(value, { tlsSecret: TEXT[0] }) && 'tlsSecret' in (value as object),
  'a map with tlsSecret, the name of a Secret',
];

const FIELDS: {
  readonly [F in keyof Required<Omit<AgentOptions, 'removals'>>]: Wanted;
} = {
  image: TEXT,
  imagePullSecrets: NAMES,
  shape: oneOf('pullwright', 'upstream'),
  security: oneOf('privileged', 'restricted'),
  seLinuxType: TEXT,
  foreign: oneOf('drop', 'keep'),
  restart: oneOf('on-change', 'on-removal', 'never'),
  restartWindow: WINDOW,
  watch: FLAG,
  report: FLAG,
  maxUnavailable: COUNT,
  priorityClassName: TEXT,
  resources: RESOURCES,
  tolerations: TOLERATIONS,
  alsoNodes: LABEL_MAPS,
  metrics: METRICS,
  healthPort: whole(1, 65_535),
  logLevel: oneOf('debug', 'info', 'warn', 'error'),
  janitor: FLAG,
};

/** Takes the options that are as wanted; what is wrong with the others goes to `problems`. */
export function readAgentOptions(raw: unknown, problems: string[]): Partial<AgentOptions> {
  if (!MAP[0](raw)) {
    problems.push('agent: must be a map of options');
    return {};
  }
  const fields = raw as Readonly<Record<string, unknown>>;
  for (const [name, value] of Object.entries(fields)) {
    const wanted = Object.hasOwn(FIELDS, name) ? FIELDS[name as keyof typeof FIELDS] : undefined;
    if (wanted === undefined)
      problems.push(`agent.${name}: no such option, expected one of ${Object.keys(FIELDS).join(', ')}`);
    else if (!wanted[0](value)) problems.push(`agent.${name}: must be ${wanted[1]}`);
  }
  // Upstream's DaemonSet starts control-plane-operator, which no image of ours holds.
  if (fields['shape'] === 'upstream' && fields['image'] === undefined)
    problems.push(
      'agent.image: shape "upstream" needs the image of HyperShift that holds control-plane-operator',
    );
  return fields;
}
