/** YAML of others, without the library's warnings: these quote the text on standard error, and the text may be a kubeconfig. */
import { parse } from 'yaml';

/**
 * What the document says. Throws what the library throws.
 *
 * @example
 * ```ts
 * import { parseYaml } from './yaml.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(parseYaml('a: !unknown [1]'), { a: [1] });
 * ```
 */
export function parseYaml(text: string): unknown {
  return parse(text, { logLevel: 'error' });
}
