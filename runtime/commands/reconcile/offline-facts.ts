/** `facts.yaml`: answers to look-ups that an offline run cannot make. */

import type { Fact, Need } from '../../controller/contract.ts';
import { parseYaml as parse } from '../../kube/yaml.ts';
import { UsageError } from '../../rules/errors.ts';

/**
 * Reads a facts file: `registry-digest: { "<image>": "<digest>" }`.
 *
 * @throws UsageError when the text has another shape
 */
export function parseFacts(text: string): (need: Need) => Fact | undefined {
  let value: unknown;
  try {
    value = parse(text);
  } catch {
    throw new UsageError('Cannot read the facts file: it is not valid YAML');
  }
  const table = (value as Readonly<Record<string, unknown>> | null)?.['registry-digest'] ?? {};
  if (typeof table !== 'object')
    throw new UsageError('Cannot read the facts file: "registry-digest" is no map from image to digest');
  const digests = table as Readonly<Record<string, unknown>>;
  return (need) => {
    const answer = Object.hasOwn(digests, need.image) ? digests[need.image] : undefined;
    return typeof answer === 'string' ? { ok: true, value: answer } : undefined;
  };
}
