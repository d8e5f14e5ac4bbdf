/**
 * `CredentialProviderConfig` of the kubelet, decoded as strictly as the kubelet does it: an unknown field, a wrong type or a
 * second provider of the same name stops the kubelet from starting.
 *
 * Source of the rule: k8s.io/kubernetes `pkg/credentialprovider/plugin`, whose answers are recorded in
 * test/conformance/cases/kubelet-match/config-validation.json. The YAML parser is an argument.
 */

import { parseGoDuration } from '../go/duration.ts';
import { isRecord } from '../record.ts';

export const CONFIG_API_VERSION = 'kubelet.config.k8s.io/v1';
export const CONFIG_KIND = 'CredentialProviderConfig';
export const PLUGIN_API_VERSION = 'credentialprovider.kubelet.k8s.io/v1';

export interface TokenAttributes {
  readonly serviceAccountTokenAudience?: string;
  readonly cacheType?: string;
  readonly requireServiceAccount?: boolean;
  readonly requiredServiceAccountAnnotationKeys?: readonly string[];
  readonly optionalServiceAccountAnnotationKeys?: readonly string[];
}

export interface ProviderEntry {
  readonly name?: string;
  readonly matchImages?: readonly string[];
  /** Go duration, such as `12h`. */
  readonly defaultCacheDuration?: string;
  readonly apiVersion?: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name?: string; readonly value?: string }[];
  readonly tokenAttributes?: TokenAttributes;
}

export interface CredentialProviderConfig {
  readonly apiVersion: string;
  readonly kind: typeof CONFIG_KIND;
  readonly providers?: readonly ProviderEntry[];
}

export type DecodedConfig =
  | { readonly ok: true; readonly config: CredentialProviderConfig }
  /** What the kubelet says before it exits. */
  | { readonly ok: false; readonly problem: string };

/** Text to value; throws for text that is no YAML, duplicate keys included. */
export type YamlParser = (text: string) => unknown;

type Shape = 'string' | 'bool' | 'duration' | readonly [Shape] | { readonly [field: string]: Shape };

const TOKEN_ATTRIBUTES: Shape = {
  serviceAccountTokenAudience: 'string',
  cacheType: 'string',
  requireServiceAccount: 'bool',
  requiredServiceAccountAnnotationKeys: ['string'],
  optionalServiceAccountAnnotationKeys: ['string'],
};

const PROVIDER = {
  name: 'string',
  matchImages: ['string'],
  defaultCacheDuration: 'duration',
  apiVersion: 'string',
  args: ['string'],
  env: [{ name: 'string', value: 'string' }],
} as const satisfies Shape;

/** Only the newest version knows tokens. */
const PROVIDER_OF_VERSION: Readonly<Record<string, Shape>> = {
  'kubelet.config.k8s.io/v1': { ...PROVIDER, tokenAttributes: TOKEN_ATTRIBUTES },
  'kubelet.config.k8s.io/v1beta1': PROVIDER,
  'kubelet.config.k8s.io/v1alpha1': PROVIDER,
};

/**
 * Reads one file.
 *
 * @example
 * ```ts
 * import { decodeCredentialProviderConfig } from './config.ts';
 * import assert from 'node:assert/strict';
 *
 * const decoded = decodeCredentialProviderConfig('{"apiVersion":"kubelet.config.k8s.io/v1","kind":"CredentialProviderConfig","foo":1}', JSON.parse);
 * assert.ok(!decoded.ok && decoded.problem.includes('unknown field "foo"'));
 * ```
 */
export function decodeCredentialProviderConfig(text: string, parseYaml: YamlParser): DecodedConfig {
  let value: unknown;
  try {
    value = parseYaml(text) ?? {};
  } catch (error) {
    return fails(`yaml: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'not YAML'}`);
  }
  return isRecord(value) ? decodeObject(value, text) : fails('it is no object');
}

function decodeObject(value: Record<string, unknown>, text: string): DecodedConfig {
  // Which kind it is, is read in any case of the names; what is in it is not.
  const [kind, apiVersion] = ['kind', 'apiversion'].map((name) => fieldInAnyCase(value, name));
  if (typeof kind !== 'string' || kind === '')
    return fails(`Object 'Kind' is missing in '${text.slice(0, 200)}'`);
  if ((apiVersion ?? '') === '') return fails(`Object 'apiVersion' is missing in '${text.slice(0, 200)}'`);
  const version = typeof apiVersion === 'string' ? apiVersion : JSON.stringify(apiVersion);
  const isKnown = kind === CONFIG_KIND && Object.hasOwn(PROVIDER_OF_VERSION, version);
  const provider = isKnown ? PROVIDER_OF_VERSION[version] : undefined;
  if (provider === undefined) return fails(`no kind "${kind}" is registered for version "${version}"`);
  const fault = contentFault(value, provider, text);
  if (fault !== undefined) return fails(fault);
  const config = withoutNulls(value) as CredentialProviderConfig;
  const twice = duplicateName(config);
  return twice === undefined
    ? { ok: true, config }
    : { ok: false, problem: `duplicate provider name "${twice}" found in configuration file(s)` };
}

/** A wrong type ends the reading; unknown fields are told at its end, all of them. */
function contentFault(value: Record<string, unknown>, provider: Shape, text: string): string | undefined {
  const faults: Faults = { types: [], unknown: [], sorted: !/^\s*\{/.test(text) };
  findFaults(value, { apiVersion: 'string', kind: 'string', providers: [provider] }, '', faults);
  if (faults.types[0] !== undefined) return faults.types[0];
  return faults.unknown.length > 0 ? `strict decoding error: ${faults.unknown.join(', ')}` : undefined;
}

function fails(problem: string): DecodedConfig {
  return { ok: false, problem: `error decoding config "<path>": ${problem}` };
}

function duplicateName({ providers = [] }: CredentialProviderConfig): string | undefined {
  const names = providers.map(({ name }) => name ?? '');
  return names.find((name, index) => names.indexOf(name) !== index);
}

function fieldInAnyCase(value: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.entries(value).findLast(([key]) => key.toLowerCase() === name)?.[1];
}

interface Faults {
  readonly types: string[];
  readonly unknown: string[];
  /** YAML reaches the decoder with sorted keys, JSON as it stands. */
  readonly sorted: boolean;
}

/** Null is the same as absent. */
function findFaults(value: unknown, shape: Shape, path: string, faults: Faults): void {
  if (value === null || value === undefined) return;
  if (typeof shape === 'string') {
    const fault = leafFault(value, shape, path);
    if (fault !== undefined) faults.types.push(fault);
  } else if (Array.isArray(shape)) {
    if (!Array.isArray(value)) faults.types.push(wrongType(value, path, 'list'));
    else for (const [index, item] of value.entries()) findFaults(item, shape[0], `${path}[${index}]`, faults);
  } else if (isRecord(value)) findFieldFaults(value, shape as Readonly<Record<string, Shape>>, path, faults);
  else faults.types.push(wrongType(value, path, 'object'));
}

function findFieldFaults(
  value: Readonly<Record<string, unknown>>,
  fields: Readonly<Record<string, Shape>>,
  path: string,
  faults: Faults,
): void {
  const dot = path === '' ? '' : `${path}.`;
  const names = Object.keys(value);
  for (const name of faults.sorted ? names.sort() : names) {
    const shape = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (shape === undefined) faults.unknown.push(`unknown field "${dot}${name}"`);
    else findFaults(value[name], shape, `${dot}${name}`, faults);
  }
}

function leafFault(value: unknown, shape: 'string' | 'bool' | 'duration', path: string): string | undefined {
  if (shape === 'bool') return typeof value === 'boolean' ? undefined : wrongType(value, path, 'bool');
  if (typeof value !== 'string') return wrongType(value, path, 'string');
  if (shape === 'string' || parseGoDuration(value) !== undefined) return undefined;
  return `time: invalid duration "${value}"`;
}

function wrongType(value: unknown, path: string, wanted: string): string {
  const found = Array.isArray(value) ? 'array' : typeof value;
  return `json: cannot unmarshal ${found} into field ${path.replace(/\[\d+\]/g, '')} of type ${wanted}`;
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item) ?? '');
  if (!isRecord(value)) return value ?? undefined;
  const fields = Object.entries(value).map(([name, field]) => [name, withoutNulls(field)] as const);
  return Object.fromEntries(fields.filter(([, field]) => field !== undefined));
}
