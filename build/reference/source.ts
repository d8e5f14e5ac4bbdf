/** Reads the program's own sources as trees, for the references: what is said in code is what they list. */
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join, resolve } from 'node:path';
import { type AnyNode, parse } from 'acorn';

const ROOT = resolve(import.meta.dirname, '../..');

/** One file as a tree, with what is around each node. */
export interface ProgramSource {
  /** `runtime/node/daemon.ts` */
  readonly file: string;
  /** With its types. */
  readonly text: string;
  /** Every node, outer ones first. */
  readonly nodes: readonly AnyNode[];
  /** Constants by name, in the order of the file. */
  readonly constants: ReadonlyMap<string, readonly Constant[]>;
  /** What each function gives back, by its name. */
  readonly returned: ReadonlyMap<string, readonly AnyNode[]>;
}

interface Constant {
  readonly at: number;
  readonly value: AnyNode;
}

/** Every file of the program. */
export function readSources(): readonly ProgramSource[] {
  return globSync('runtime/**/*.ts', { cwd: ROOT })
    .sort()
    .map((file) => parseSource(file, readFileSync(join(ROOT, file), 'utf8')));
}

/**
 * A text as a {@link ProgramSource}.
 *
 * @example
 * ```ts
 * import { parseSource } from './source.ts';
 * import assert from 'node:assert/strict';
 *
 * const { constants } = parseSource('a.ts', "const NAME: string = 'x';");
 * assert.equal(constants.get('NAME')?.length, 1);
 * ```
 *
 * @throws SyntaxError when the text is not TypeScript that Node takes
 */
export function parseSource(file: string, text: string): ProgramSource {
  // Types become blanks, so that positions stay.
  const tree = parse(stripTypeScriptTypes(text), { ecmaVersion: 'latest', sourceType: 'module' });
  const nodes: AnyNode[] = [];
  collect(tree, nodes);
  const constants = new Map<string, Constant[]>();
  for (const node of nodes)
    if (
      node.type === 'VariableDeclarator' &&
      node.id.type === 'Identifier' &&
      node.init !== null &&
      node.init !== undefined
    ) {
      const known = constants.get(node.id.name) ?? [];
      constants.set(node.id.name, [...known, { at: node.start, value: node.init }]);
    }
  return { file, text, nodes, constants, returned: returnedIn(nodes) };
}

function returnedIn(nodes: readonly AnyNode[]): ProgramSource['returned'] {
  const returned = new Map<string, readonly AnyNode[]>();
  for (const node of nodes) {
    if (node.type !== 'FunctionDeclaration' || node.id === null) continue;
    const inside: AnyNode[] = [];
    collect(node.body, inside);
    returned.set(
      node.id.name,
      inside.flatMap((one) =>
        one.type === 'ReturnStatement' && one.argument !== null && one.argument !== undefined
          ? [one.argument as AnyNode]
          : [],
      ),
    );
  }
  return returned;
}

function collect(value: unknown, nodes: AnyNode[]): void {
  if (Array.isArray(value)) {
    for (const one of value) collect(one, nodes);
    return;
  }
  if (typeof value !== 'object' || value === null || !('type' in value)) return;
  nodes.push(value as AnyNode);
  for (const child of Object.values(value)) collect(child, nodes);
}

/** The value of a field of an object that is written out, if it has it. */
export function propertyOf(node: AnyNode, name: string): AnyNode | undefined {
  if (node.type !== 'ObjectExpression') return undefined;
  const found = node.properties.find(
    (property) =>
      property.type === 'Property' &&
      !property.computed &&
      ((property.key.type === 'Identifier' && property.key.name === name) ||
        (property.key.type === 'Literal' && property.key.value === name)),
  );
  return found?.type === 'Property' ? found.value : undefined;
}

/** Texts that an expression can have, as far as the sources say; computed parts are `{name}` or `…`. */
export class SourceTexts {
  readonly #shared = new Map<string, ProgramSource>();
  readonly #functions = new Map<string, ProgramSource>();

  constructor(sources: readonly ProgramSource[]) {
    for (const source of sources) {
      for (const name of source.constants.keys())
        if (/^[A-Z][A-Z0-9_]+$/.test(name)) this.#shared.set(name, source);
      for (const name of source.returned.keys()) this.#functions.set(name, source);
    }
  }

  of(node: AnyNode | undefined, source: ProgramSource, depth = 0): readonly string[] {
    if (node === undefined || depth > 6) return [];
    switch (node.type) {
      case 'Literal':
        return typeof node.value === 'string' ? [node.value] : [];
      case 'TemplateLiteral':
        return [this.#template(node, source)];
      case 'Identifier':
        return this.#named(node.name, node.start, source, depth);
      case 'MemberExpression':
        return this.#member(node.object, source, depth);
      case 'CallExpression':
        return this.#call(node, source, depth);
      default:
        return this.#sides(node, source, depth);
    }
  }

  #sides(node: AnyNode, source: ProgramSource, depth: number): readonly string[] {
    const inner = (one: AnyNode): readonly string[] => this.of(one, source, depth + 1);
    if (node.type === 'ConditionalExpression') return [...inner(node.consequent), ...inner(node.alternate)];
    if (node.type === 'LogicalExpression') return [...inner(node.left), ...inner(node.right)];
    if (node.type === 'BinaryExpression')
      return [[node.left, node.right].map((side) => inner(side)[0] ?? '…').join('')];
    return [];
  }

  #template(node: AnyNode & { type: 'TemplateLiteral' }, source: ProgramSource): string {
    const parts = node.quasis.map(({ value }, index) => {
      const expression = node.expressions[index] as AnyNode | undefined;
      return `${value.cooked ?? ''}${expression === undefined ? '' : this.#hole(expression, source)}`;
    });
    return parts.join('');
  }

  /** A constant is replaced by its value, a plain name stays. */
  #hole(expression: AnyNode, source: ProgramSource): string {
    if (expression.type === 'Identifier') {
      const [known, ...others] = /^[A-Z][A-Z0-9_]+$/.test(expression.name) ? this.of(expression, source) : [];
      if (known !== undefined && others.length === 0) return known;
      return `{${expression.name}}`;
    }
    if (expression.type === 'MemberExpression' && expression.property.type === 'Identifier')
      return `{${expression.property.name}}`;
    return this.#counted(expression, source) ?? '…';
  }

  #counted(node: AnyNode, source: ProgramSource): string | undefined {
    return node.type === 'CallExpression' ? countedText(node, (one) => this.#hole(one, source)) : undefined;
  }

  /** What the function gives back; of a text that is cut, the text. */
  #call(node: AnyNode & { type: 'CallExpression' }, source: ProgramSource, depth: number): readonly string[] {
    const { callee } = node;
    if (callee.type === 'MemberExpression')
      return callee.property.type === 'Identifier' && callee.property.name === 'slice'
        ? this.of(callee.object, source, depth + 1)
        : [];
    if (callee.type !== 'Identifier') return [];
    const many = this.#counted(node, source);
    if (many !== undefined) return [many];
    const home = source.returned.has(callee.name) ? source : this.#functions.get(callee.name);
    if (home === undefined) return [];
    return (home.returned.get(callee.name) ?? []).flatMap((given) => this.of(given, home, depth + 1));
  }

  /** The nearest constant of the name above the position, else the shared one of that name. */
  #named(name: string, at: number, source: ProgramSource, depth: number): readonly string[] {
    const own = source.constants.get(name)?.findLast((one) => one.at < at) ?? source.constants.get(name)?.[0];
    if (own !== undefined) return this.of(own.value, source, depth + 1);
    const other = this.#shared.get(name);
    const shared = other?.constants.get(name)?.[0];
    return other === undefined || shared === undefined ? [] : this.of(shared.value, other, depth + 1);
  }

  /** What a table that is written out can give: `TABLE[key]`. */
  #member(object: AnyNode, source: ProgramSource, depth: number): readonly string[] {
    if (object.type !== 'Identifier' || !/^[A-Z][A-Z0-9_]+$/.test(object.name)) return [];
    const table = (source.constants.get(object.name) ??
      this.#shared.get(object.name)?.constants.get(object.name))?.[0];
    if (table?.value.type !== 'ObjectExpression') return [];
    return table.value.properties.flatMap((property) =>
      property.type === 'Property' ? this.of(property.value as AnyNode, source, depth + 1) : [],
    );
  }
}

// Numbers before nouns, as `counted` and `countedOf` write them, in the form for many: `{selected} namespaces`.

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
 * import { countedText } from './source.ts';
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
