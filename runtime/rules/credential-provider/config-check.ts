/**
 * Whether the kubelet starts with a `CredentialProviderConfig`: all of its rules, all violations at once, in its own words.
 *
 * Source of the rule: k8s.io/kubernetes `validateCredentialProviderConfig` (with the gate
 * KubeletServiceAccountTokenForCredentialProviders on, as it is since 1.34).
 */

import { matchImageFault } from '../auth-lookup/match-images.ts';
import { toByteText } from '../go/bytes.ts';
import { formatGoDuration, parseGoDuration } from '../go/duration.ts';
import { encodeGoText } from '../go/json-encode.ts';
import { goQuote } from '../go/quote.ts';
import {
  type CredentialProviderConfig,
  decodeCredentialProviderConfig,
  PLUGIN_API_VERSION,
  type ProviderEntry,
  type TokenAttributes,
  type YamlParser,
} from './config.ts';

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
 * import { kubeletRefusal } from './config-check.ts';
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

function nameFaults(name: string): readonly string[] {
  const invalid = (reason: string): string => `providers.name: Invalid value: ${goQuote(name)}: ${reason}`;
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
    `providers.apiVersion: Unsupported value: ${goQuote(version)}: supported values: ${list(PLUGIN_VERSIONS)}`,
  ];
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
  if (duration >= 0) return [];
  return [
    `providers.defaultCacheDuration: Invalid value: ${encodeGoText(formatGoDuration(duration))}: must be greater than or equal to 0`,
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
          `${TOKEN}: Invalid value: [${both.map(encodeGoText).join(',')}]: annotation keys cannot be both required and optional`,
        ]
      : []),
    ...cacheTypeFaults(token.cacheType ?? ''),
  ];
}

function cacheTypeFaults(type: string): readonly string[] {
  if (type === '')
    return [
      `${TOKEN}.cacheType: Required value: cacheType is required to be set when tokenAttributes is specified. Supported values are: ${CACHE_TYPES.join(', ')}`,
    ];
  if (CACHE_TYPES.includes(type)) return [];
  return [
    `${TOKEN}.cacheType: Unsupported value: ${encodeGoText(type)}: supported values: ${list(CACHE_TYPES)}`,
  ];
}

function keyFaults(keys: readonly string[], path: string): readonly string[] {
  return keys.flatMap((key, index) => [
    // In lower case: a key may have capitals where a name may not.
    ...labelKeyFaults(key.toLowerCase()).map((fault) => `${path}: Invalid value: ${goQuote(key)}: ${fault}`),
    ...(keys.indexOf(key) < index ? [`${path}: Duplicate value: ${goQuote(key)}`] : []),
  ]);
}

const NAME_FORM = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const NAME_RULE = `must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${NAME_FORM}')`;
const PREFIX_FORM = '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*';
const PREFIX_RULE = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${PREFIX_FORM}')`;

/** What IsLabelKey of k8s.io/apimachinery 0.36 says. */
function labelKeyFaults(key: string): readonly string[] {
  const parts = key.split('/');
  if (parts.length > 2)
    return [
      `a valid label key ${NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  const name = parts.at(-1) ?? '';
  return [
    ...(parts.length === 2 ? prefixFaults(parts[0] ?? '') : []),
    ...(name === '' ? ['name part must be non-empty'] : []),
    ...(toByteText(name).length > 63 ? ['name part must be no more than 63 bytes'] : []),
    ...(new RegExp(`^${NAME_FORM}$`).test(name) ? [] : [`name part ${NAME_RULE}`]),
  ];
}

function prefixFaults(prefix: string): readonly string[] {
  if (prefix === '') return ['prefix part must be non-empty'];
  return [
    ...(toByteText(prefix).length > 253 ? ['prefix part must be no more than 253 bytes'] : []),
    ...(new RegExp(`^${PREFIX_FORM}$`).test(prefix) ? [] : [`prefix part ${PREFIX_RULE}`]),
  ];
}

function list(values: readonly string[]): string {
  return values.map(goQuote).join(', ');
}
