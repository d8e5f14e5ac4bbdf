/**
 * Whether the kubelet starts with a `CredentialProviderConfig`: all of its rules, all violations at once, in its own words.
 *
 * Source of the rule: k8s.io/kubernetes `validateCredentialProviderConfig` (with the gate
 * KubeletServiceAccountTokenForCredentialProviders on, as it is since 1.34).
 */
import {
  type CredentialProvider,
  type CredentialProviderConfig,
  decodeCredentialProviderConfig,
  PLUGIN_API_VERSION,
  type TokenAttributes,
  type YamlParser,
} from './credential-provider-config.ts';
import { formatGoDuration, parseGoDuration } from './go-duration.ts';
import { matchImageFault } from './match-images.ts';

const PLUGIN_VERSIONS: readonly string[] = ['v1', 'v1alpha1', 'v1beta1'].map(
  (version) => `credentialprovider.kubelet.k8s.io/${version}`,
);
const CACHE_TYPES: readonly string[] = ['ServiceAccount', 'Token'];

/** Every violation of a decoded file; empty when the kubelet takes it. */
export function configFaults(config: CredentialProviderConfig): readonly string[] {
  const providers = config.providers ?? [];
  if (providers.length === 0) return ['providers: Required value: at least 1 item in plugins is required'];
  return providers.flatMap(providerFaults);
}

/**
 * Reads and judges a file as the kubelet does at its start. Undefined when it is fine, else the kubelet's words.
 *
 * @example
 * ```ts
 * import { kubeletRefusal } from './credential-provider-config-check.ts';
 * import assert from 'node:assert/strict';
 *
 * const file = { apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig', providers: [] };
 * assert.match(kubeletRefusal(JSON.stringify(file), JSON.parse) ?? '', /at least 1 item/);
 * ```
 */
export function kubeletRefusal(text: string, parseYaml: YamlParser): string | undefined {
  const decoded = decodeCredentialProviderConfig(text, parseYaml);
  if (!decoded.ok) return decoded.problem;
  const faults = configFaults(decoded.config);
  if (faults.length <= 1) return faults[0];
  return `[${[...new Set(faults)].join(', ')}]`;
}

function providerFaults(provider: CredentialProvider): readonly string[] {
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

function nameFaults(name: string): readonly string[] {
  const invalid = (reason: string): string => `providers.name: Invalid value: ${quoted(name)}: ${reason}`;
  return [
    ...(name.includes('/') ? [invalid("provider name cannot contain '/'")] : []),
    ...(name.includes(' ') ? [invalid('provider name cannot contain spaces')] : []),
    ...(name === '.' ? [invalid("provider name cannot be '.'")] : []),
    ...(name === '..' ? [invalid("provider name cannot be '..'")] : []),
  ];
}

function versionFaults(version: string): readonly string[] {
  if (version === '') return ['providers.apiVersion: Required value'];
  if (PLUGIN_VERSIONS.includes(version)) return [];
  return [
    `providers.apiVersion: Unsupported value: ${quoted(version)}: supported values: ${list(PLUGIN_VERSIONS)}`,
  ];
}

function imageFaults(patterns: readonly string[]): readonly string[] {
  if (patterns.length === 0)
    return ['providers.matchImages: Required value: at least 1 item in matchImages is required'];
  return patterns.flatMap((pattern) => {
    const fault = matchImageFault(pattern);
    return fault === undefined ? [] : [`providers.matchImages: Invalid value: ${quoted(pattern)}: ${fault}`];
  });
}

function durationFaults(text: string | undefined): readonly string[] {
  const duration = text === undefined ? undefined : parseGoDuration(text);
  if (duration === undefined) return ['providers.defaultCacheDuration: Required value'];
  if (duration >= 0) return [];
  return [
    `providers.defaultCacheDuration: Invalid value: ${quoted(formatGoDuration(duration))}: must be greater than or equal to 0`,
  ];
}

const TOKEN = 'providers.tokenAttributes';

function tokenFaults(token: TokenAttributes, version: string | undefined): readonly string[] {
  const required = token.requiredServiceAccountAnnotationKeys ?? [];
  const optional = token.optionalServiceAccountAnnotationKeys ?? [];
  const both = [...new Set(required)].filter((key) => optional.includes(key)).sort();
  return [
    ...((token.serviceAccountTokenAudience ?? '') === ''
      ? [`${TOKEN}.serviceAccountTokenAudience: Required value`]
      : []),
    ...cacheTypeFaults(token.cacheType ?? ''),
    ...(token.requireServiceAccount === undefined ? [`${TOKEN}.requireServiceAccount: Required value`] : []),
    ...(version === PLUGIN_API_VERSION
      ? []
      : [`${TOKEN}: Forbidden: tokenAttributes is only supported for ${PLUGIN_API_VERSION} API version`]),
    ...(token.requireServiceAccount === false && required.length > 0
      ? [
          `${TOKEN}.requiredServiceAccountAnnotationKeys: Forbidden: requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set`,
        ]
      : []),
    ...keyFaults(required, `${TOKEN}.requiredServiceAccountAnnotationKeys`),
    ...keyFaults(optional, `${TOKEN}.optionalServiceAccountAnnotationKeys`),
    ...(both.length > 0
      ? [
          `${TOKEN}: Invalid value: ${JSON.stringify(both)}: annotation keys cannot be both required and optional`,
        ]
      : []),
  ];
}

function cacheTypeFaults(type: string): readonly string[] {
  if (type === '')
    return [
      `${TOKEN}.cacheType: Required value: cacheType is required to be set when tokenAttributes is specified`,
    ];
  if (CACHE_TYPES.includes(type)) return [];
  return [`${TOKEN}.cacheType: Unsupported value: ${quoted(type)}: supported values: ${list(CACHE_TYPES)}`];
}

function keyFaults(keys: readonly string[], path: string): readonly string[] {
  const twice = [...new Set(keys.filter((key, index) => keys.indexOf(key) !== index))];
  return [
    ...keys
      .filter((key) => !isQualifiedName(key))
      .map(
        (key) =>
          `${path}: Invalid value: ${quoted(key)}: it is no qualified name (RFC 1123 prefix, "/", name)`,
      ),
    ...twice.map((key) => `${path}: Duplicate value: ${quoted(key)}`),
  ];
}

function isQualifiedName(key: string): boolean {
  const [name = '', prefix, ...more] = key.split('/').reverse();
  if (more.length > 0 || name.length > 63 || !/^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/.test(name))
    return false;
  if (prefix === undefined) return true;
  return (
    prefix.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(prefix)
  );
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

function list(values: readonly string[]): string {
  return values.map(quoted).join(', ');
}
