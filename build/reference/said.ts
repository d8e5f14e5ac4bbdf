/** Finds every reason that the program can report in a condition, verdict, event or error, with its messages. */
import type { AnyNode } from 'acorn';
import { calledBy, givenTo, type ProgramSource, propertyOf, textsOf } from './source.ts';

/** One use of a reason in the program. */
export interface SaidReason {
  readonly as: 'condition' | 'verdict' | 'event' | 'error';
  /** CamelCase. */
  readonly reason: string;
  /** Type of a condition or an event; name of a verdict. */
  readonly type: readonly string[];
  /** Possible messages; empty if they are defined elsewhere. */
  readonly says: readonly string[];
  readonly file: string;
}

/** CamelCase. */
const REASON = /^[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*$/;

type Said = Omit<SaidReason, 'file'>;

/**
 * Returns the reasons in `sources`, in their order. The messages of a reason are next to it: in the same object, list or call.
 *
 * @example
 * ```ts
 * import { parseSource } from './source.ts';
 * import { allSaid } from './said.ts';
 * import assert from 'node:assert/strict';
 *
 * const text = "const x = { type: 'Ready', reason: lost ? 'Lost' : 'Late', message: lost ? 'it is lost' : `pool ${name} waits` };";
 * const said = allSaid([parseSource('a.ts', text)]);
 * assert.deepEqual(said.map(({ reason, says }) => [reason, says]), [['Lost', ['it is lost']], ['Late', ['pool {name} waits']]]);
 * ```
 */
export function allSaid(sources: readonly ProgramSource[]): readonly SaidReason[] {
  return sources.flatMap(({ file, nodes }) =>
    nodes.flatMap((node) => [...inObject(node), ...inList(node)].map((one) => ({ ...one, file }))),
  );
}

function inObject(node: AnyNode): readonly Said[] {
  const [reason, code, note, verdict] = ['reason', 'code', 'note', 'verdict'].map((name) =>
    propertyOf(node, name),
  );
  const as = note ? 'event' : verdict ? 'verdict' : reason ? 'condition' : 'error';
  const type = textsOf(verdict ?? propertyOf(node, 'type'));
  const words = note ?? propertyOf(node, 'message') ?? propertyOf(node, 'state');
  return pairs(reason ?? code ?? propertyOf(node, 'check'), words).map((pair) => ({ as, type, ...pair }));
}

/** If both are choices by the same test, pairs each reason with the message of its branch. */
function pairs(
  reason: AnyNode | null | undefined,
  words: AnyNode | null | undefined,
): readonly Pick<Said, 'reason' | 'says'>[] {
  if (
    reason?.type === 'ConditionalExpression' &&
    words?.type === 'ConditionalExpression' &&
    isSame(reason.test, words.test)
  )
    return [...pairs(reason.consequent, words.consequent), ...pairs(reason.alternate, words.alternate)];
  const says = [words, ...givenTo(words)].flatMap((one) => textsOf(one));
  return textsOf(reason).flatMap((text) => (REASON.test(text) ? [{ reason: text, says }] : []));
}

function isSame(a: AnyNode, b: AnyNode): boolean {
  const plain = (node: AnyNode): string =>
    JSON.stringify(node, (key, value: unknown) => (key === 'start' || key === 'end' ? 0 : value));
  return plain(a) === plain(b);
}

/** A reason followed by its message. In an error, the message precedes the options with its code. */
function inList(node: AnyNode): readonly Said[] {
  const isCall = node.type === 'CallExpression' || node.type === 'NewExpression';
  if (!isCall && node.type !== 'ArrayExpression') return [];
  const list = (isCall ? node.arguments : node.elements) as readonly (AnyNode | null)[];
  const parameters = isCall ? parametersOf(node.callee) : [];
  const [code, message] = ['code', 'message'].map((name) => list[parameters.indexOf(name)]);
  // A problem at a path.
  if (code && parameters.includes('path'))
    return pairs(code, message).map((pair) => ({ as: 'error', type: [], ...pair }));
  return list.flatMap((one, at): readonly Said[] => {
    const [before, after] = [list[at - 1], list[at + 1]];
    const given = one ? propertyOf(one, 'code') : undefined;
    if (given && isCall) return pairs(given, before).map((pair) => ({ as: 'error', type: [], ...pair }));
    // Status, reason, message: the order in which the adapter reports.
    const isTold =
      parameters[at] === 'reason' || (before?.type === 'Literal' && typeof before.value === 'boolean');
    return pairs(one, after).flatMap(({ reason, says: texts }): readonly Said[] => {
      const says = texts.filter((text) => text.includes(' '));
      return isTold || says.length > 0 ? [{ as: 'condition', type: [], reason, says }] : [];
    });
  });
}

/** Parameter names of a function of the program. */
function parametersOf(callee: AnyNode): readonly string[] {
  const called = calledBy(callee);
  if (called?.type !== 'FunctionDeclaration') return [];
  return called.params.map((one) => (one.type === 'Identifier' ? one.name : ''));
}
