/**
 * `CredentialProviderConfig` of the kubelet, decoded as strictly as the kubelet does it: an unknown field, a wrong type or a
 * second provider of the same name stops the kubelet from starting.
 *
 * Source of the rule: k8s.io/kubernetes `pkg/credentialprovider/plugin`, whose answers are recorded in
 * test/conformance/cases/kubelet-match/config-validation.json. The YAML parser is an argument.
 */
import { parseGoDuration } from './go-duration.ts';

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

export interface CredentialProvider {
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
  readonly providers?: readonly CredentialProvider[];
}

export type Decoded =
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
 * import { decodeCredentialProviderConfig } from './credential-provider-config.ts';
 * import assert from 'node:assert/strict';
 *
 * const decoded = decodeCredentialProviderConfig('{"apiVersion":"kubelet.config.k8s.io/v1","kind":"CredentialProviderConfig","foo":1}', JSON.parse);
 * assert.ok(!decoded.ok && decoded.problem.includes('unknown field "foo"'));
 * ```
 */
export function decodeCredentialProviderConfig(text: string, parseYaml: YamlParser): Decoded {
  let value: unknown;
  try {
    value = parseYaml(text) ?? {};
  } catch (error) {
    return fails(`yaml: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'not YAML'}`);
  }
  return isObject(value) ? decodeObject(value, text) : fails('it is no object');
}

function decodeObject(value: Record<string, unknown>, text: string): Decoded {
  const { kind, apiVersion } = value;
  if (typeof kind !== 'string' || kind === '')
    return fails(`Object 'Kind' is missing in '${text.slice(0, 200)}'`);
  const provider = typeof apiVersion === 'string' ? PROVIDER_OF_VERSION[apiVersion] : undefined;
  if (provider === undefined || kind !== CONFIG_KIND)
    return fails(
      `no kind "${kind}" is registered for version "${typeof apiVersion === 'string' ? apiVersion : JSON.stringify(apiVersion)}"`,
    );
  const fault = faultIn(value, { apiVersion: 'string', kind: 'string', providers: [provider] }, '');
  if (fault !== undefined) return fails(fault);
  const config = withoutNulls(value) as CredentialProviderConfig;
  const twice = duplicateName(config);
  return twice === undefined
    ? { ok: true, config }
    : { ok: false, problem: `duplicate provider name "${twice}" found in configuration file(s)` };
}

function fails(problem: string): Decoded {
  return { ok: false, problem: `error decoding config "<path>": ${problem}` };
}

function duplicateName({ providers = [] }: CredentialProviderConfig): string | undefined {
  const names = providers.map(({ name }) => name ?? '');
  return names.find((name, index) => names.indexOf(name) !== index);
}

/** The first thing that does not fit, as the strict decoder names it. Null is the same as absent. */
function faultIn(value: unknown, shape: Shape, path: string): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof shape === 'string') return leafFault(value, shape, path);
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return wrongType(value, path, 'list');
    return firstOf(value.map((item, index) => faultIn(item, shape[0], `${path}[${index}]`)));
  }
  if (!isObject(value)) return wrongType(value, path, 'object');
  const fields = shape as Readonly<Record<string, Shape>>;
  const dot = path === '' ? '' : `${path}.`;
  return firstOf(
    Object.entries(value).map(([name, field]) => {
      const inner = Object.hasOwn(fields, name) ? fields[name] : undefined;
      return inner === undefined
        ? `strict decoding error: unknown field "${dot}${name}"`
        : faultIn(field, inner, `${dot}${name}`);
    }),
  );
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

function firstOf(faults: readonly (string | undefined)[]): string | undefined {
  return faults.find((fault) => fault !== undefined);
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item) ?? '');
  if (!isObject(value)) return value ?? undefined;
  const fields = Object.entries(value).map(([name, field]) => [name, withoutNulls(field)] as const);
  return Object.fromEntries(fields.filter(([, field]) => field !== undefined));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
