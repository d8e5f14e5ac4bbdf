/**
 * `CredentialProviderConfig` of the kubelet, decoded as strictly as the kubelet does it: an unknown field, a wrong type or a
 * second provider of the same name stops the kubelet from starting.
 *
 * Source of the rule: k8s.io/kubernetes `pkg/credentialprovider/plugin`, whose answers are recorded in
 * test/conformance/cases/kubelet-match/config-validation.json. The YAML parser is an argument.
 */
import { matchImageFault } from '../core/docker-config/match-images.ts';
import { formatGoDuration, parseGoDuration } from '../core/go/duration.ts';
import { encodeGoText } from '../core/go/json.ts';
import { goQuote, toByteText } from '../core/go/text.ts';
import { isRecord } from '../core/record.ts';

export const CONFIG_API_VERSION = 'kubelet.config.k8s.io/v1';
export const CONFIG_KIND = 'CredentialProviderConfig';
export const PLUGIN_API_VERSION = 'credentialprovider.kubelet.k8s.io/v1';

/** Fields that are decoded; `duration`: a Go duration, such as `12h`. */
type Shape = 'string' | 'bool' | 'duration' | readonly [Shape] | { readonly [field: string]: Shape };

/** A value of the shape. */
type Decoded<S> = S extends 'string' | 'duration'
  ? string
  : S extends 'bool'
    ? boolean
    : S extends readonly [infer Item]
      ? readonly Decoded<Item>[]
      : { readonly [Field in keyof S]?: Decoded<S[Field]> };

const TOKEN_ATTRIBUTES = {
  serviceAccountTokenAudience: 'string',
  cacheType: 'string',
  requireServiceAccount: 'bool',
  requiredServiceAccountAnnotationKeys: ['string'],
  optionalServiceAccountAnnotationKeys: ['string'],
} as const satisfies Shape;

const PROVIDER = {
  name: 'string',
  matchImages: ['string'],
  defaultCacheDuration: 'duration',
  apiVersion: 'string',
  args: ['string'],
  env: [{ name: 'string', value: 'string' }],
} as const satisfies Shape;

const PROVIDER_V1 = { ...PROVIDER, tokenAttributes: TOKEN_ATTRIBUTES } as const;

/** Only v1 has tokenAttributes. */
const PROVIDER_OF_VERSION: Readonly<Record<string, Shape>> = {
  'kubelet.config.k8s.io/v1': PROVIDER_V1,
  'kubelet.config.k8s.io/v1beta1': PROVIDER,
  'kubelet.config.k8s.io/v1alpha1': PROVIDER,
};

export type ProviderEntry = Decoded<typeof PROVIDER_V1>;

export interface CredentialProviderConfig {
  readonly apiVersion: string;
  readonly kind: typeof CONFIG_KIND;
  readonly providers?: readonly ProviderEntry[];
}

/** Throws for invalid YAML, including duplicate keys. */
export type YamlParser = (text: string) => unknown;

/** Reads one file. `problem`: the error with which the kubelet exits. */
export function decodeCredentialProviderConfig(text: string, parseYaml: YamlParser) {
  let value: unknown;
  try {
    value = parseYaml(text) ?? {};
  } catch (error) {
    return fails(`yaml: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'not YAML'}`);
  }
  return isRecord(value) ? decodeObject(value, text) : fails('it is not an object');
}

function decodeObject(value: Record<string, unknown>, text: string) {
  // Names of kind and apiVersion match in any case, all others exactly.
  const [kind, apiVersion] = ['kind', 'apiversion'].map(
    (name) => Object.entries(value).findLast(([key]) => key.toLowerCase() === name)?.[1],
  );
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
  if (twice === undefined) return { ok: true, config } as const;
  return { ok: false, problem: `duplicate provider name "${twice}" found in configuration file(s)` } as const;
}

/** The first wrong type ends decoding; unknown fields are reported together at the end. */
function contentFault(value: Record<string, unknown>, provider: Shape, text: string): string | undefined {
  const faults: Faults = { types: [], unknown: [], sorted: !/^\s*\{/.test(text) };
  findFaults(value, { apiVersion: 'string', kind: 'string', providers: [provider] }, '', faults);
  if (faults.types[0] !== undefined) return faults.types[0];
  return faults.unknown.length > 0 ? `strict decoding error: ${faults.unknown.join(', ')}` : undefined;
}

function fails(problem: string) {
  return { ok: false, problem: `error decoding config "<path>": ${problem}` } as const;
}

function duplicateName({ providers = [] }: CredentialProviderConfig): string | undefined {
  const names = providers.map(({ name }) => name ?? '');
  return names.find((name, index) => names.indexOf(name) !== index);
}

interface Faults {
  readonly types: string[];
  readonly unknown: string[];
  /** The decoder gets YAML with sorted keys, JSON unchanged. */
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
  } else if (isRecord(value)) {
    const fields = shape as Readonly<Record<string, Shape>>;
    const names = Object.keys(value);
    for (const name of faults.sorted ? names.sort() : names) {
      const below = path === '' ? name : `${path}.${name}`;
      const known = Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (known === undefined) faults.unknown.push(`unknown field "${below}"`);
      else findFaults(value[name], known, below, faults);
    }
  } else faults.types.push(wrongType(value, path, 'object'));
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

// Whether the kubelet starts with a `CredentialProviderConfig`: all violations at once, with the kubelet's messages.
// Source of the rule: k8s.io/kubernetes `validateCredentialProviderConfig` (with the gate
// KubeletServiceAccountTokenForCredentialProviders on, as it is since 1.34).

const PLUGIN_VERSIONS: readonly string[] = ['v1', 'v1alpha1', 'v1beta1'].map(
  (version) => `credentialprovider.kubelet.k8s.io/${version}`,
);
const CACHE_TYPES: readonly string[] = ['ServiceAccount', 'Token'];

/** Every violation of a decoded file; empty when the kubelet accepts it. */
export function configFaults(config: CredentialProviderConfig): readonly string[] {
  const providers = config.providers ?? [];
  if (providers.length === 0) return ['providers: Required value: at least 1 item in plugins is required'];
  return providers.flatMap(providerFaults);
}

/**
 * Decodes and validates a file as the kubelet does at its start. Undefined when it is valid, else the kubelet's message.
 */
export function kubeletRefusal(text: string, parseYaml: YamlParser): string | undefined {
  const decoded = decodeCredentialProviderConfig(text, parseYaml);
  if (!decoded.ok) return decoded.problem;
  const faults = configFaults(decoded.config);
  if (faults.length <= 1) return faults[0];
  return `[${[...new Set(faults)].join(', ')}]`;
}

function providerFaults(provider: ProviderEntry): readonly string[] {
  return [
    ...nameFaults(provider.name ?? ''),
    ...versionFaults(provider.apiVersion ?? ''),
    ...imageFaults(provider.matchImages ?? []),
    ...durationFaults(provider.defaultCacheDuration),
    ...(provider.tokenAttributes === undefined
      ? []
      : tokenFaults(provider.tokenAttributes, provider.apiVersion)),
  ];
}

/** The fault, if `isWrong`. */
function when(isWrong: boolean, fault: string): readonly string[] {
  return isWrong ? [fault] : [];
}

function nameFaults(name: string): readonly string[] {
  const invalid = `providers.name: Invalid value: ${goQuote(name)}: provider name cannot`;
  return [
    ...when(name.includes('/'), `${invalid} contain '/'`),
    ...when(name.includes(' '), `${invalid} contain spaces`),
    ...when(name === '.' || name === '..', `${invalid} be '${name}'`),
  ];
}

function versionFaults(version: string): readonly string[] {
  if (version === '') return ['providers.apiVersion: Required value'];
  return when(
    !PLUGIN_VERSIONS.includes(version),
    `providers.apiVersion: Unsupported value: ${goQuote(version)}: supported values: ${list(PLUGIN_VERSIONS)}`,
  );
}

function imageFaults(patterns: readonly string[]): readonly string[] {
  if (patterns.length === 0)
    return ['providers.matchImages: Required value: at least 1 item in matchImages is required'];
  return patterns.flatMap((pattern) => {
    const fault = matchImageFault(pattern);
    return fault === undefined ? [] : [`providers.matchImages: Invalid value: ${goQuote(pattern)}: ${fault}`];
  });
}

function durationFaults(text: string | undefined): readonly string[] {
  const duration = text === undefined ? undefined : parseGoDuration(text);
  if (duration === undefined) return ['providers.defaultCacheDuration: Required value'];
  return when(
    duration < 0,
    `providers.defaultCacheDuration: Invalid value: ${encodeGoText(formatGoDuration(duration))}: must be greater than or equal to 0`,
  );
}

const TOKEN = 'providers.tokenAttributes';

function tokenFaults(token: Decoded<typeof TOKEN_ATTRIBUTES>, version: string | undefined) {
  const required = token.requiredServiceAccountAnnotationKeys ?? [];
  const optional = token.optionalServiceAccountAnnotationKeys ?? [];
  const both = [...new Set(required)].filter((key) => optional.includes(key)).sort();
  const { cacheType: type = '' } = token;
  return [
    ...when(
      (token.serviceAccountTokenAudience ?? '') === '',
      `${TOKEN}.serviceAccountTokenAudience: Required value`,
    ),
    ...when(token.requireServiceAccount === undefined, `${TOKEN}.requireServiceAccount: Required value`),
    ...when(
      version !== PLUGIN_API_VERSION,
      `${TOKEN}: Forbidden: tokenAttributes is only supported for ${PLUGIN_API_VERSION} API version`,
    ),
    ...when(
      token.requireServiceAccount === false && required.length > 0,
      `${TOKEN}.requiredServiceAccountAnnotationKeys: Forbidden: requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set`,
    ),
    ...keyFaults(required, `${TOKEN}.requiredServiceAccountAnnotationKeys`),
    ...keyFaults(optional, `${TOKEN}.optionalServiceAccountAnnotationKeys`),
    ...when(
      both.length > 0,
      `${TOKEN}: Invalid value: [${both.map(encodeGoText).join(',')}]: annotation keys cannot be both required and optional`,
    ),
    ...when(
      type === '',
      `${TOKEN}.cacheType: Required value: cacheType is required to be set when tokenAttributes is specified. Supported values are: ${CACHE_TYPES.join(', ')}`,
    ),
    ...when(
      type !== '' && !CACHE_TYPES.includes(type),
      `${TOKEN}.cacheType: Unsupported value: ${encodeGoText(type)}: supported values: ${list(CACHE_TYPES)}`,
    ),
  ];
}

function keyFaults(keys: readonly string[], path: string): readonly string[] {
  return keys.flatMap((key, index) => [
    // In lower case, because a key may have capitals where a name may not.
    ...labelKeyFaults(key.toLowerCase()).map((fault) => `${path}: Invalid value: ${goQuote(key)}: ${fault}`),
    ...(keys.indexOf(key) < index ? [`${path}: Duplicate value: ${goQuote(key)}`] : []),
  ]);
}

const NAME_FORM = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const NAME_RULE = `must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${NAME_FORM}')`;
const PREFIX_FORM = '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*';
const PREFIX_RULE = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${PREFIX_FORM}')`;

/** Messages of IsLabelKey in k8s.io/apimachinery 0.36. */
function labelKeyFaults(key: string): readonly string[] {
  const parts = key.split('/');
  if (parts.length > 2)
    return [
      `a valid label key ${NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  const name = parts.at(-1) ?? '';
  return [
    ...(parts.length === 2 ? prefixFaults(parts[0] ?? '') : []),
    ...when(name === '', 'name part must be non-empty'),
    ...when(toByteText(name).length > 63, 'name part must be no more than 63 bytes'),
    ...when(!new RegExp(`^${NAME_FORM}$`).test(name), `name part ${NAME_RULE}`),
  ];
}

function prefixFaults(prefix: string): readonly string[] {
  if (prefix === '') return ['prefix part must be non-empty'];
  return [
    ...when(toByteText(prefix).length > 253, 'prefix part must be no more than 253 bytes'),
    ...when(!new RegExp(`^${PREFIX_FORM}$`).test(prefix), `prefix part ${PREFIX_RULE}`),
  ];
}

function list(values: readonly string[]): string {
  return values.map(goQuote).join(', ');
}
