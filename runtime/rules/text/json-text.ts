/** JSON for people and for programs that read what is printed: indented by two, with a line end. */

/**
 * The text of a value. Its type is named by the caller, so that what is printed is held against the type that its schema describes.
 *
 * @example
 * ```ts
 * import { jsonText } from './json-text.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(jsonText<{ readonly level: string }>({ level: 'ok' }), '{\n  "level": "ok"\n}\n');
 * ```
 */
export function jsonText<Printed = never>(value: NoInfer<Printed>): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
