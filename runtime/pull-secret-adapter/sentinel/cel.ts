/**
 * CEL with limits: operators write the expressions and tenants the data, and neither may consume much time or memory. The
 * language is standard CEL with `condition()`, as in HyperFleet's Sentinel, but without regular expressions, whose cost is
 * unbounded, and without nested comprehensions.
 */
import { type ASTNode, Environment, type Context as Variables } from '@marcbachmann/cel-js';
import { scalarText } from '../../core/record.ts';
import { onOneLine } from '../../core/text.ts';

/** A compiled expression. */
export type CelProgram = Readonly<ReturnType<typeof compile>>;

/** An invalid expression or a failed evaluation. The message contains no value of a document. */
export class CelError extends Error {
  override readonly name = 'CelError';
}

const LIMITS = {
  maxAstNodes: 500,
  maxDepth: 32,
  maxListElements: 100,
  maxMapEntries: 100,
  maxCallArguments: 8,
};
const MAX_TEXT = 4096;
/** Maximum size of a value, nested values included: characters of strings, entries of lists and maps. */
const MAX_WEIGHT = 65_536;

const COMPREHENSIONS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'map', 'filter']);
const PLAIN =
  'condition has size startsWith endsWith contains bool bytes double dyn duration int string timestamp type uint getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds';
const FUNCTIONS: ReadonlySet<string> = new Set([...COMPREHENSIONS, ...PLAIN.split(' ')]);

/** Compiles expressions of one file. */
export type CelCompiler = (expression: string) => CelProgram;

/** @param condition implements `condition(type)`, if supported */
export function celCompiler(
  variables: Readonly<Record<string, 'dyn' | 'map' | 'string' | 'google.protobuf.Timestamp'>>,
  condition?: (type: string) => Readonly<Record<string, unknown>>,
): CelCompiler {
  const environment = new Environment({ limits: LIMITS });
  for (const [name, type] of Object.entries(variables)) environment.registerVariable(name, type);
  if (condition !== undefined) environment.registerFunction('condition(string): map', condition);
  return (expression) => compile(environment, expression);
}

function compile(environment: Environment, expression: string) {
  if (expression.trim() === '') throw new CelError('it is empty: expected a CEL expression');
  if (expression.length > MAX_TEXT)
    throw new CelError(`it has ${expression.length} characters: expected at most ${MAX_TEXT}`);
  const parsed = attempt(() => environment.parse(expression));
  const names = freeNames(parsed.ast);
  const { valid, type = 'dyn', error } = parsed.check();
  if (!valid) throw new CelError(firstLine(error));
  return {
    /** `bool`, `string`, `dyn` and so on. */
    type,
    /** Free variables of the expression. */
    names,
    /** @throws CelError if the evaluation fails or its value is too large */
    evaluate: (variables: Variables) => {
      const value: unknown = attempt(() => parsed(variables) as unknown);
      if (weigh(value, MAX_WEIGHT) < 0) throw new CelError('its value is too large');
      return value;
    },
  };
}

function attempt<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof CelError ? error : new CelError(firstLine(error));
  }
}

/** The first line of a message; in the others the library quotes the expression. */
function firstLine(error: unknown): string {
  const { message } = error as { readonly message?: unknown };
  return onOneLine(scalarText(message).split('\n')[0] ?? '').slice(0, 200);
}

/** @throws CelError for an unsupported function or a nested comprehension */
function freeNames(ast: ASTNode): ReadonlySet<string> {
  const bound = new Set<string>();
  const names = new Set<string>();
  /** @param depth number of enclosing comprehensions */
  const examine = (node: ASTNode, depth: number): void => {
    if (node.op === 'id') names.add(node.args);
    if (node.op === 'call') return examineCall(node.args[0], node.args[1], depth);
    if (node.op === 'rcall') {
      const [name, receiver, given] = node.args;
      examine(receiver, depth);
      return examineCall(name, given, depth);
    }
    for (const child of nodesIn(node.args)) examine(child, depth);
  };
  const examineCall = (name: string, given: readonly ASTNode[], outer: number): void => {
    if (!FUNCTIONS.has(name)) throw new CelError(`unsupported function "${onOneLine(name)}"`);
    const depth = outer + (COMPREHENSIONS.has(name) ? 1 : 0);
    if (depth > 1) throw new CelError(`"${name}" is nested in another comprehension: nesting is unsupported`);
    const [first] = given;
    if (COMPREHENSIONS.has(name) && first?.op === 'id') bound.add(first.args);
    for (const child of given) examine(child, depth);
  };
  examine(ast, 0);
  return names.difference(bound);
}

function nodesIn(value: unknown): readonly ASTNode[] {
  if (Array.isArray(value)) return value.flatMap(nodesIn);
  return typeof value === 'object' && value !== null && 'op' in value ? [value as ASTNode] : [];
}

/** Returns the rest of `budget`; negative if the value exceeds it. */
function weigh(value: unknown, budget: number): number {
  if (typeof value === 'string') return budget - value.length;
  if (typeof value !== 'object' || value === null) return budget - 1;
  if (ArrayBuffer.isView(value)) return budget - value.byteLength;
  let left = budget - 1;
  for (const [key, one] of value instanceof Map ? value.entries() : Object.entries(value)) {
    left = weigh(one, left - String(key).length);
    if (left < 0) return left;
  }
  return left;
}
