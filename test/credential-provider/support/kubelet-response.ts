/** The kubelet's strict reading of a CredentialProviderResponse, and its cache. */
import { parseGoDuration } from '../../../runtime/core/go/duration.ts';
import { type JsonNode, parseGoJson } from '../../../runtime/core/go/json.ts';

export interface TakenResponse {
  readonly keys: number;
  readonly cacheKeyType: string;
  readonly cacheDuration: string | undefined;
}

const FIELDS: readonly string[] = ['kind', 'apiVersion', 'cacheKeyType', 'cacheDuration', 'auth'];

/** The kubelet's reading of the plugin's stdout; undefined when it rejects it. */
export function kubeletTakes(
  stdout: string,
  apiVersion: string = 'credentialprovider.kubelet.k8s.io/v1',
): TakenResponse | undefined {
  const response = objectIn(stdout);
  if (response === undefined || !hasKnownFields(response, apiVersion)) return undefined;
  const { cacheDuration } = response;
  if (!isDuration(cacheDuration ?? '0s')) return undefined;
  const auth = response['auth'] ?? {};
  if (!isObject(auth) || !Object.values(auth).every(isEntry)) return undefined;
  return {
    keys: Object.keys(auth).length,
    cacheKeyType: String(response['cacheKeyType']),
    cacheDuration: typeof cacheDuration === 'string' ? cacheDuration : undefined,
  };
}

function hasKnownFields(response: Record<string, unknown>, apiVersion: string): boolean {
  const { kind, cacheKeyType } = response;
  return (
    Object.keys(response).every((field) => FIELDS.includes(field)) &&
    kind === 'CredentialProviderResponse' &&
    response['apiVersion'] === apiVersion &&
    ['Image', 'Registry', 'Global'].includes(String(cacheKeyType))
  );
}

function isDuration(value: unknown): boolean {
  return typeof value === 'string' && parseGoDuration(value) !== undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Null is an empty entry. */
function isEntry(entry: unknown): boolean {
  return (
    entry === null ||
    (isObject(entry) &&
      Object.entries(entry).every(
        ([field, value]) =>
          ['username', 'password'].includes(field) && (value === null || typeof value === 'string'),
      ))
  );
}

function objectIn(text: string): Record<string, unknown> | undefined {
  const parsed = parseGoJson(text);
  // JSON.parse accepts duplicate keys; the kubelet rejects them, at any depth.
  if (!parsed.ok || hasTwins(parsed.value)) return undefined;
  const value: unknown = JSON.parse(text);
  return isObject(value) ? value : undefined;
}

function hasTwins(node: JsonNode): boolean {
  if (node.kind !== 'object') return false;
  const names = new Set(node.members.map(({ key }) => key));
  return names.size < node.members.length || node.members.some(({ value }) => hasTwins(value));
}

/** One lookup in the kubelet's cache of plugin responses. */
export interface PluginCall {
  readonly image: string;
  readonly pod: string;
  readonly atMs: number;
}

/**
 * Calls that run the plugin: a response is cached for its duration (or the default) by image, registry or globally, and
 * by the pod's token.
 */
export function executions(
  calls: readonly PluginCall[],
  { cacheKeyType, cacheDurationMs }: { readonly cacheKeyType: string; readonly cacheDurationMs: number },
): readonly boolean[] {
  const expires = new Map<string, number>();
  return calls.map(({ image, pod, atMs }) => {
    // An image named like a registry shares the cache key of that registry.
    const [byImage, byRegistry, byAll] = [image, image.split('/')[0] ?? '', '*'].map(
      (key) => `${key} ${pod}`,
    );
    const kept = { Image: byImage, Registry: byRegistry }[cacheKeyType] ?? byAll;
    // Valid until it expires; a duration of 0 is not cached.
    if ([byImage, byRegistry, byAll].some((key = '') => (expires.get(key) ?? -1) >= atMs)) return false;
    if (cacheDurationMs !== 0) expires.set(kept ?? '', atMs + cacheDurationMs);
    return true;
  });
}
