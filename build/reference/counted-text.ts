/** Numbers before nouns, as `counted` and `countedOf` write them, in the form for many: `{selected} namespaces`. */
import type { AnyNode } from 'acorn';

type Call = AnyNode & { type: 'CallExpression' };

/**
 * What the call says of many.
 *
 * @param hole how what is computed is shown
 * @returns undefined for any other call
 *
 * @example
 * ```ts
 * import { parseExpressionAt } from 'acorn';
 * import { countedText } from './counted-text.ts';
 * import assert from 'node:assert/strict';
 *
 * const said = (text: string) =>
 *   countedText(parseExpressionAt(text, 0, { ecmaVersion: 'latest' }) as never, (one) => `{${(one as { name?: string }).name}}`);
 * assert.equal(said("counted(n, 'node')"), '{n} nodes');
 * assert.equal(said("countedOf(n, m, ['node', 'nodes'], ['is', 'are'])"), '{n} of {m} nodes are');
 * assert.equal(said('other(n)'), undefined);
 * ```
 */
export function countedText(call: Call, hole: (node: AnyNode) => string): string | undefined {
  const [first, second, third, fourth] = call.arguments as readonly AnyNode[];
  if (call.callee.type !== 'Identifier' || first === undefined || second === undefined) return undefined;
  if (call.callee.name === 'counted') {
    const one = textOf(second);
    return `${hole(first)} ${textOf(third) ?? `${one}s`}`;
  }
  if (call.callee.name !== 'countedOf') return undefined;
  return `${hole(first)} of ${hole(second)} ${manyOf(third)} ${manyOf(fourth)}`;
}

function textOf(node: AnyNode | undefined): string | undefined {
  return node?.type === 'Literal' && typeof node.value === 'string' ? node.value : undefined;
}

function manyOf(node: AnyNode | undefined): string {
  const many =
    node?.type === 'ArrayExpression' ? (node.elements[1] as AnyNode | null | undefined) : undefined;
  return textOf(many ?? undefined) ?? '…';
}
