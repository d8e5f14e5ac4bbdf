/** Every reason that the program can give in a condition, a verdict, an event or an error, with the words that go with it. */
import type { AnyNode } from 'acorn';
import { type ProgramSource, propertyOf, SourceTexts } from './source.ts';

/** One use of a reason in the program. */
export interface SaidReason {
  readonly as: 'condition' | 'verdict' | 'event' | 'error';
  /** CamelCase. */
  readonly reason: string;
  /** Type of a condition or an event; the word of a verdict. */
  readonly type: readonly string[];
  /** Forms of what a person reads; none where it comes from elsewhere. */
  readonly says: readonly string[];
  readonly file: string;
}

const REASON = /^[A-Z][A-Za-z0-9]+$/;

/**
 * What these sources can say, in their order.
 *
 * @example
 * ```ts
 * import { parseSource } from './source.ts';
 * import { allSaid } from './said.ts';
 * import assert from 'node:assert/strict';
 *
 * const text = "const x = { type: 'Ready', status: 'False', reason: lost ? 'Lost' : 'Late', message: `pool ${name} waits` };";
 * const said = allSaid([parseSource('a.ts', text)]);
 * assert.deepEqual(said.map(({ reason, says }) => [reason, says[0]]), [['Lost', 'pool {name} waits'], ['Late', 'pool {name} waits']]);
 * ```
 */
export function allSaid(sources: readonly ProgramSource[]): readonly SaidReason[] {
  const texts = new SourceTexts(sources);
  const givers = new Map(sources.flatMap(giversIn));
  const found = sources.flatMap((source) =>
    source.nodes.flatMap((node) => [
      ...inObject(node, source, texts),
      ...inError(node, source, texts),
      ...inCall(node, { source, texts, givers }),
      ...inList(node, source, texts),
    ]),
  );
  const known = new Set(found.map(({ reason }) => reason));
  return [...found, ...sources.flatMap(inTypes).filter(({ reason }) => !known.has(reason))];
}

function inObject(node: AnyNode, source: ProgramSource, texts: SourceTexts): readonly SaidReason[] {
  const reasonNode = propertyOf(node, 'reason') ?? propertyOf(node, 'code') ?? propertyOf(node, 'check');
  if (reasonNode === undefined) return [];
  const of = (name: string): readonly string[] => texts.of(propertyOf(node, name), source);
  const isEvent = propertyOf(node, 'note') !== undefined;
  const isVerdict = propertyOf(node, 'verdict') !== undefined;
  const isError = propertyOf(node, 'reason') === undefined;
  const as = isEvent ? 'event' : isVerdict ? 'verdict' : isError ? 'error' : 'condition';
  const type = isVerdict ? of('verdict') : of('type');
  return entries({ as, type, says: [...of('note'), ...of('message')] }, texts.of(reasonNode, source), source);
}

/** One entry for each of the texts that can be a reason. */
function entries(
  one: Pick<SaidReason, 'as' | 'says'> & { readonly type?: readonly string[] },
  texts: readonly string[],
  { file }: ProgramSource,
): readonly SaidReason[] {
  return texts.filter((text) => REASON.test(text)).map((reason) => ({ type: [], ...one, reason, file }));
}

/** `new PullwrightError(message, { code })` and its like. */
function inError(node: AnyNode, source: ProgramSource, texts: SourceTexts): readonly SaidReason[] {
  if (node.type !== 'NewExpression') return [];
  const [message, options] = node.arguments as AnyNode[];
  const code = options === undefined ? undefined : propertyOf(options, 'code');
  return entries({ as: 'error', says: texts.of(message, source) }, texts.of(code, source), source);
}

/** Status, reason, words, as the adapter writes what it reports; or reason and words, as a table of steps has them. */
function inList(node: AnyNode, source: ProgramSource, texts: SourceTexts): readonly SaidReason[] {
  if (node.type !== 'ArrayExpression') return [];
  const elements = (node.elements as readonly (AnyNode | null)[]).map((one) => one ?? undefined);
  const [status, ...rest] = elements;
  const isTriple = elements.length === 3 && status?.type === 'Literal' && typeof status.value === 'boolean';
  const [reason, message] = isTriple ? rest : elements;
  const says = texts.of(message, source);
  if (!isTriple && (elements.length !== 2 || !says.some((text) => text.includes(' ')))) return [];
  return entries({ as: 'condition', says }, texts.of(reason, source), source);
}

/** Functions with a parameter that is a reason, and its number. */
function giversIn({ nodes }: ProgramSource): readonly (readonly [name: string, reason: number])[] {
  return nodes.flatMap((node) => {
    if (node.type !== 'FunctionDeclaration' || node.id === null) return [];
    const names = node.params.map((parameter) => (parameter.type === 'Identifier' ? parameter.name : ''));
    const reason = names.indexOf('reason');
    return reason < 0 ? [] : [[node.id.name, reason] as const];
  });
}

interface Program {
  readonly source: ProgramSource;
  readonly texts: SourceTexts;
  readonly givers: ReadonlyMap<string, number>;
}

/** A reason among the arguments, and the words behind it. */
function inCall(node: AnyNode, { source, texts, givers }: Program): readonly SaidReason[] {
  if (node.type !== 'CallExpression' && node.type !== 'NewExpression') return [];
  if (node.callee.type !== 'Identifier') return [];
  const args = node.arguments as AnyNode[];
  const given = givers.get(node.callee.name);
  return args.flatMap((one, index) => {
    const says = texts.of(args[index + 1], source).filter((text) => text.includes(' '));
    if (says.length === 0 && index !== given) return [];
    return entries({ as: 'condition', says }, texts.of(one, source), source);
  });
}

const UNION = /\b(?:readonly (reason|code)\??:|type \w*Reason =)\s*((?:\|?\s*'\w+'\s*)+)/g;

/** Reasons that only a type lists: their words come from elsewhere. */
function inTypes(source: ProgramSource): readonly SaidReason[] {
  return [...source.text.matchAll(UNION)].flatMap(([, field, union = '']) =>
    entries(
      { as: field === 'code' ? 'error' : 'condition', says: [] },
      [...union.matchAll(/'(\w+)'/g)].map(([, name = '']) => name),
      source,
    ),
  );
}
