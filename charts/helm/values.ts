/** `values.yaml` and its schema: what a chart's user reads first, and what refuses a wrong value before anything is applied. */
import { toYaml } from '../../runtime/kube/yaml.ts';
import { PullwrightError } from '../../runtime/rules/errors.ts';
import type { Fleet, FleetCluster } from '../fleet.ts';
import type { ChartValue, JsonSchema, Setting } from './settings.ts';

type Values = { readonly [key: string]: ChartValue };

/**
 * The values that say what a cluster of the fleet says.
 *
 * @throws PullwrightError `ChartCannotSay` with everything that the chart has no value for
 */
export function valuesOf(fleet: Fleet, cluster: FleetCluster, all: readonly Setting[]): Values {
  const { context, input, sections } = cluster;
  const values = {
    image: context.image,
    namespace: context.namespace,
    imagePullSecrets: context.imagePullSecrets,
    kind: context.kind === 'standalone' ? undefined : context.kind,
    discovery: context.discovery ? true : undefined,
    delivery: input.delivery,
    monitoring: input.monitoring,
    dashboards: input.dashboards,
    ...(Object.keys(input.reconciler ?? {}).length === 0 ? {} : { reconciler: input.reconciler }),
    systems: Object.fromEntries(sections.map(({ system, config }) => [system.name, config])),
  };
  // Without what is undefined.
  const plain = JSON.parse(JSON.stringify(values)) as Values;
  const unsaid = [
    ...context.hosted.map(({ name }) => `hosted cluster "${name}"`),
    ...(fleet.gitops === undefined ? [] : ['gitops']),
    ...(fleet.runbooks === undefined ? [] : ['runbooks']),
    ...(context.network === undefined ? [] : ['network']),
    ...(input.extend === undefined ? [] : ['extend']),
    ...unknownPaths(plain, [], all),
  ];
  if (unsaid.length === 0) return plain;
  throw new PullwrightError(
    `Cannot make a chart of cluster "${context.name}": the chart has no value for ${unsaid.join(', ')}`,
    {
      code: 'ChartCannotSay',
      disposition: 'terminal',
      hint: 'Leave it out, or render manifests: --format manifests',
    },
  );
}

function unknownPaths(
  value: ChartValue,
  path: readonly string[],
  all: readonly Setting[],
): readonly string[] {
  const name = path.join('.');
  const setting = all.find((one) => one.path.join('.') === name);
  if (setting !== undefined && setting.type !== 'section')
    return isSaid(setting, value) ? [] : [`${name}: ${JSON.stringify(value)}`];
  const isBranch = all.some((one) => one.path.join('.').startsWith(name === '' ? '' : `${name}.`));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [name];
  if (setting === undefined && !isBranch) return [name];
  return Object.entries(value).flatMap(([key, inner]) => unknownPaths(inner, [...path, key], all));
}

/** Whether the chart's schema, narrower than the fleet's, takes the value. */
function isSaid({ type, samples, schema }: Setting, value: ChartValue): boolean {
  if (type === 'choice') return samples.includes(value);
  if (type === 'list') return Array.isArray(value) && value.length > 0;
  const { pattern } = schema;
  if (typeof value !== 'string') return true;
  return value !== '' && (typeof pattern !== 'string' || new RegExp(pattern).test(value));
}

/** JSON Schema of draft 7, which every Helm from version 3 on reads. */
export function valuesSchema(all: readonly Setting[]): JsonSchema {
  const root = branch([], all);
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the Pullwright chart',
    ...root,
    // Helm puts it there when the chart is part of another.
    properties: { ...(root['properties'] as object), global: { type: 'object' } },
    required: all.flatMap(({ path, required }) => (required ? path : [])),
  };
}

function branch(path: readonly string[], all: readonly Setting[]): JsonSchema {
  const below = all.filter(
    (one) => one.path.length > path.length && path.every((part, at) => part === one.path[at]),
  );
  const names = new Set(below.map((one) => one.path[path.length] ?? ''));
  const properties = Object.fromEntries(
    [...names].map((name) => {
      const here = [...path, name];
      const setting = all.find((one) => one.path.join('.') === here.join('.'));
      if (setting !== undefined && setting.type !== 'section') return [name, setting.schema];
      const inner = branch(here, all);
      if (setting === undefined) return [name, inner];
      const { description } = setting.schema;
      return [
        name,
        {
          description,
          ...inner,
          ...requiredOf(setting.schema, inner),
          type: path[0] === 'systems' && path.length === 1 ? ['boolean', 'object'] : 'object',
        },
      ];
    }),
  );
  return { type: 'object', additionalProperties: false, properties };
}

/** What the section of a fleet cannot be without. */
function requiredOf(declared: JsonSchema, { properties }: JsonSchema): JsonSchema {
  const options = declared['anyOf'] as readonly JsonSchema[] | undefined;
  const map = options?.find((one) => one['type'] === 'object') ?? declared;
  const required = (map['required'] ?? []) as readonly string[];
  const known = required.filter((name) => name in (properties as object));
  return known.length === 0 ? {} : { required: known };
}

/** `values.yaml`: what is said, and beside it, as comments, what else can be. */
export function valuesText(values: Values, all: readonly Setting[]): string {
  return `${lines(values, [], all).join('\n')}\n`;
}

function lines(
  values: ChartValue | undefined,
  path: readonly string[],
  all: readonly Setting[],
): readonly string[] {
  const below = all.filter(
    (one) => one.path.length > path.length && path.every((part, at) => part === one.path[at]),
  );
  const names = [...new Set(below.map((one) => one.path[path.length] ?? ''))];
  const pad = '  '.repeat(path.length);
  return names.flatMap((name) => {
    const here = [...path, name];
    const setting = all.find((one) => one.path.join('.') === here.join('.'));
    const value = values === undefined ? undefined : (values as Values)[name];
    const about = setting === undefined ? [] : describe(setting).map((line) => `${pad}# ${line}`);
    const isLeaf = setting !== undefined && setting.type !== 'section';
    if (isLeaf && value === undefined) return [...about, `${pad}# ${name}:`];
    if (isLeaf)
      return [
        ...about,
        ...toYaml({ [name]: value })
          .trimEnd()
          .split('\n')
          .map((line) => pad + line),
      ];
    const inner = lines(value, here, all);
    if (value === undefined)
      return [...about, `${pad}# ${name}:`, ...inner.map((line) => line.replace(/^(\s*)(?:# )?/, '$1# '))];
    const isEmpty = typeof value !== 'object' || value === null || Object.keys(value).length === 0;
    return [...about, `${pad}${name}:${isEmpty ? ' {}' : ''}`, ...inner];
  });
}

function describe({ schema, type, samples }: Setting): readonly string[] {
  const description = typeof schema['description'] === 'string' ? [schema['description']] : [];
  const isOneOf = type === 'choice' && typeof samples[0] !== 'boolean';
  return [
    ...description,
    ...(isOneOf ? [`One of ${samples.map((one) => JSON.stringify(one)).join(', ')}`] : []),
  ];
}
