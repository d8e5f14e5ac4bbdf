/**
 * What plain YAML scalars mean to kubectl, the kubelet and the API server. They read YAML 1.1 in Go's manner: `yes`, `on` and `y`
 * are booleans, `0644` is octal and `1_000` a number, while `1:20` and `2001-01-01` are texts. To newer YAML all of these are
 * something else, so that a parser of it would call files good that a cluster refuses.
 *
 * Source of the rule: sigs.k8s.io/yaml 1.6 over go.yaml.in/yaml/v2, compared in test/oracle/kubernetes/yaml.test.ts.
 */
import {
  type Alias,
  isAlias,
  isMap,
  isSeq,
  Scalar,
  type ScalarTag,
  type SchemaOptions,
  type YAMLMap,
} from 'yaml';
import { scalarText } from '../rules/record.ts';

const tag = (name: string): string => `tag:yaml.org,2002:${name}`;

const NULL: ScalarTag = {
  tag: tag('null'),
  default: true,
  identify: (value) => value === null || value === undefined,
  test: /^(?:|~|null|Null|NULL)$/,
  resolve: () => new Scalar(null),
};

const NULL_KEY: ScalarTag = {
  ...NULL,
  default: 'key',
  identify: () => false,
  resolve(text, fail) {
    fail('null as a key, expected a text: quote it');
    return new Scalar(text);
  },
};

const BOOL: ScalarTag = {
  tag: tag('bool'),
  default: true,
  identify: (value) => typeof value === 'boolean',
  test: /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/,
  resolve: (text) => /^(?:y|t|on$)/i.test(text),
};

/** Go takes underscores out first, wherever they are; only the first character must be another. */
const INT: ScalarTag = {
  tag: tag('int'),
  default: true,
  identify: (value) => typeof value === 'number' || typeof value === 'bigint',
  test: /^(?:[-+]_*)?(?:0_*[xX]_*[0-9a-fA-F][_0-9a-fA-F]*|0_*[oO]_*[0-7][_0-7]*|0_*[bB]_*[01][_01]*|0[_0-7]*|[1-9][_0-9]*)$/,
  resolve(text) {
    const [, sign, digits = ''] = /^([-+]?)(.*)$/.exec(text.replaceAll('_', '').toLowerCase()) ?? [];
    const value = Number(/^0\d/.test(digits) ? `0o${digits.slice(1)}` : digits);
    return sign === '-' && value !== 0 ? -value : value;
  },
};

const FLOAT: ScalarTag = {
  tag: tag('float'),
  default: true,
  test: /^(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|(?=[-+0-9])(?:[-+]_*)?(?:\._*[0-9][_0-9]*|[0-9][_0-9]*(?:\.[_0-9]*)?)(?:[eE](?:_*[-+])?_*[0-9][_0-9]*)?)$/,
  resolve(text) {
    const value = Number(text.replaceAll('_', ''));
    return Number.isFinite(value) ? value : new Scalar(text);
  },
};

const NOT_FINITE: ScalarTag = {
  tag: tag('float'),
  default: true,
  test: /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/,
  resolve(text, fail) {
    fail(`${text} is a number that JSON cannot say`);
    return new Scalar(text);
  },
};

const BINARY: ScalarTag = {
  tag: tag('binary'),
  default: false,
  resolve: (text) => Buffer.from(text, 'base64').toString(),
};

/** `<<: *base`. The later one wins, also over a key that is written out before. */
const MERGE: ScalarTag = {
  tag: tag('merge'),
  default: 'key',
  test: /^<<$/,
  resolve: () => Object.assign(new Scalar(Symbol('<<')), { addToJSMap: mergeInto }),
};

type Context = Parameters<Alias['resolve']>[1];

function mergeInto(
  context: Context,
  target: YAMLMap | Map<unknown, unknown> | Set<unknown> | Readonly<Record<string, unknown>>,
  value: unknown,
): void {
  const source = sourceOf(context, value);
  const parts = isSeq(source) ? source.items.map((item) => sourceOf(context, item)).toReversed() : [source];
  for (const part of parts) {
    if (!isMap(part)) throw new Error('Merge sources must be maps or map aliases');
    for (const [key, inner] of part.toJSON(undefined, context, Map) as Map<unknown, unknown>) {
      if (target instanceof Map) target.set(key, inner);
      else
        Object.defineProperty(target, scalarText(key), {
          value: inner,
          writable: true,
          enumerable: true,
          configurable: true,
        });
    }
  }
}

function sourceOf(context: Context, value: unknown): unknown {
  return context !== undefined && isAlias(value) ? value.resolve(context.doc, context) : value;
}

/** Options that make the library read scalars as Kubernetes does. */
export const KUBERNETES_SCHEMA: SchemaOptions = {
  schema: 'failsafe',
  customTags: [NULL_KEY, NULL, BOOL, INT, FLOAT, NOT_FINITE, BINARY, MERGE],
};
