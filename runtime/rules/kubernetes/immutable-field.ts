/** What to say of a field that the API server does not let anybody change: what is there, what is wanted, and the way out. */
import { describeObject, type KubeObject } from './object.ts';

/** Kinds whose removal takes more with it than the object: never made again by themselves. */
const CARRIERS: ReadonlySet<string> = new Set([
  'CustomResourceDefinition',
  'Namespace',
  'PersistentVolumeClaim',
]);

/** Whether an object of `kind` may be deleted and made again to change it. */
export function isReplaceable({ kind }: Pick<KubeObject, 'kind'>): boolean {
  return !CARRIERS.has(kind);
}

/**
 * @param fields paths that the API server named, such as `spec.selector`
 * @returns message and hint; values of Secrets are not in them
 *
 * @example
 * ```ts
 * import { immutableText } from './immutable-field.ts';
 * import assert from 'node:assert/strict';
 *
 * const secret = (type: string) => ({ apiVersion: 'v1', kind: 'Secret', type, metadata: { namespace: 'web', name: 'pull' } });
 * assert.deepEqual(immutableText(secret('Opaque'), secret('kubernetes.io/dockerconfigjson'), ['type']), {
 *   message: 'Cannot change "Secret/web/pull" in place: type cannot be changed, there is "Opaque", expected "kubernetes.io/dockerconfigjson"',
 *   hint: 'Keep what you need of it, then: kubectl -n web delete secret pull',
 * });
 * ```
 */
export function immutableText(
  before: KubeObject,
  desired: KubeObject,
  fields: readonly string[],
): { readonly message: string; readonly hint: string } {
  const { kind, metadata } = before;
  const { namespace, name } = metadata;
  const said = [...new Set(fields)].map((field) => fieldText(before, desired, field)).join('; ');
  const scope = namespace === undefined ? '' : `-n ${namespace} `;
  const command = `kubectl ${scope}delete ${kind.toLowerCase()} ${name}`;
  return {
    message: `Cannot change "${describeObject({ kind, namespace, name })}" in place: ${said}`,
    hint: isReplaceable(before)
      ? `Keep what you need of it, then: ${command}`
      : `What it holds goes with it, so that it is left to you: save that, then: ${command}`,
  };
}

function fieldText(before: KubeObject, desired: KubeObject, field: string): string {
  const [there, wanted] = [valueAt(before, field), valueAt(desired, field)];
  const isSecret = before.kind === 'Secret' && /^(data|stringData)\b/.test(field);
  const why = isSecret && before['immutable'] === true ? ' because "immutable: true" is set' : '';
  if (isSecret || there === undefined || wanted === undefined) return `${field} cannot be changed${why}`;
  return `${field} cannot be changed, there is ${shown(there)}, expected ${shown(wanted)}`;
}

function valueAt(object: KubeObject, field: string): unknown {
  return field
    .split('.')
    .reduce<unknown>(
      (value, key) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, key)
          ? (value as Readonly<Record<string, unknown>>)[key]
          : undefined,
      object,
    );
}

/** Short enough for an event; a wrapped credential shows as such. */
function shown(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 160 ? `${text.slice(0, 157)}...` : text;
}
