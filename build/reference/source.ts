/** Parses the program's sources into syntax trees, from which the reference pages are generated. */
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join, resolve } from 'node:path';
import { type AnyNode, type CallExpression, type ModuleDeclaration, parse, type Statement } from 'acorn';

const ROOT = resolve(import.meta.dirname, '../..');

/** One parsed file. */
export interface ProgramSource {
  /** `runtime/node/daemon.ts` */
  readonly file: string;
  /** Every node, outer ones first. */
  readonly nodes: readonly AnyNode[];
}

/** Parent of each node, in all files. */
const parents = new WeakMap<AnyNode, AnyNode>();
/** Values that each function returns. */
const returned = new WeakMap<AnyNode, (AnyNode | null | undefined)[]>();
/** Calls by function name. */
const calls = new Map<string | undefined, readonly CallExpression[]>();
/** Modules by file; `files` is the reverse. */
const modules = new Map<string, AnyNode>();
const files = new WeakMap<AnyNode, string>();

/** Parses every file of the program. */
export function readSources(): readonly ProgramSource[] {
  return globSync('runtime/**/*.ts', { cwd: ROOT })
    .sort()
    .map((file) => parseSource(file, readFileSync(join(ROOT, file), 'utf8')));
}

/**
 * Parses `text` as the file `file`.
 *
 * @throws SyntaxError when Node cannot strip the types
 */
export function parseSource(file: string, text: string): ProgramSource {
  // Types become blanks, so positions do not change.
  const tree = parse(stripTypeScriptTypes(text), { ecmaVersion: 'latest', sourceType: 'module' });
  const nodes: AnyNode[] = [];
  collect(tree, nodes);
  modules.set(file, tree);
  files.set(tree, file);
  return { file, nodes };
}

function collect(value: unknown, nodes: AnyNode[], parent?: AnyNode): void {
  if (Array.isArray(value)) for (const one of value) collect(one, nodes, parent);
  else if (typeof value === 'object' && value !== null && 'type' in value) {
    const node = value as AnyNode;
    nodes.push(node);
    if (parent !== undefined) parents.set(node, parent);
    if (node.type === 'FunctionDeclaration') returned.set(node, []);
    if (node.type === 'CallExpression' && node.callee.type === 'Identifier')
      calls.set(node.callee.name, [...(calls.get(node.callee.name) ?? []), node]);
    if (node.type === 'ReturnStatement') returned.get(functionAround(node) ?? node)?.push(node.argument);
    for (const child of Object.values(value)) collect(child, nodes, node);
  }
}

function functionAround(node: AnyNode): AnyNode | undefined {
  let around: AnyNode | undefined = node;
  while (around !== undefined && !/Function/.test(around.type)) around = parents.get(around);
  return around;
}

/** Constants and functions that the block itself declares. */
function constantsIn(block: AnyNode): readonly (readonly [name: string, value: AnyNode])[] {
  if (block.type !== 'Program' && block.type !== 'BlockStatement') return [];
  const statements: readonly (Statement | ModuleDeclaration)[] = block.body;
  return statements.flatMap((statement): readonly (readonly [string, AnyNode])[] => {
    const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
    if (declared?.type === 'FunctionDeclaration') return [[declared.id.name, declared]];
    if (declared?.type !== 'VariableDeclaration') return [];
    return declared.declarations.flatMap(({ id, init }) =>
      id.type === 'Identifier' && init ? [[id.name, init]] : [],
    );
  });
}

/** Resolves a name to a constant or function: of the nearest block around `at`, or of the module that it is imported from. */
export function constantOf(name: string, at: AnyNode): AnyNode | undefined {
  let block = at;
  for (let next = parents.get(at); next !== undefined; next = parents.get(next)) {
    block = next;
    const found = constantsIn(block).findLast(([own]) => own === name);
    if (found !== undefined) return found[1];
  }
  return block.type === 'Program' ? importOf(name, block) : undefined;
}

function importOf(name: string, program: AnyNode & { readonly type: 'Program' }): AnyNode | undefined {
  for (const { specifiers, source } of program.body.filter((one) => one.type === 'ImportDeclaration')) {
    const found = specifiers.find(({ local }) => local.name === name);
    if (found?.type !== 'ImportSpecifier' || found.imported.type !== 'Identifier') continue;
    const { name: exported } = found.imported;
    const module = modules.get(join(files.get(program) ?? '', '..', String(source.value)));
    return module && constantsIn(module).find(([own]) => own === exported)?.[1];
  }
  return undefined;
}

/** Name of a module's constant. */
const CONSTANT = /^[A-Z][A-Z0-9_]+$/;

/** The value of a property of an object literal; undefined if it is missing. */
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

/**
 * Returns the texts that an expression can have, from literals and constants; computed parts are `{name}` or `…`.
 *
 * @example
 * ```ts
 * import { parseSource, propertyOf, textsOf } from './source.ts';
 * import assert from 'node:assert/strict';
 *
 * const text = "function f(n) { const lack = `${n.name} waits`; return { message: n.late ? lack : `${counted(n, 'node')} end` }; }";
 * const said = parseSource('a.ts', text).nodes.flatMap((node) => textsOf(propertyOf(node, 'message')));
 * assert.deepEqual(said, ['{name} waits', '{n} nodes end']);
 * ```
 */
export function textsOf(node: AnyNode | null | undefined, depth = 0): readonly string[] {
  // Limits recursion, because a function may call itself.
  if (depth > 6) return [];
  const inner = (one: AnyNode | null | undefined): readonly string[] => textsOf(one, depth + 1);
  switch (node?.type) {
    case 'Literal':
      return typeof node.value === 'string' ? [node.value] : [];
    case 'TemplateLiteral':
      return [templateText(node)];
    case 'Identifier':
      return inner(constantOf(node.name, node));
    case 'MemberExpression':
      return valuesOf(node).flatMap(inner);
    case 'CallExpression':
      return (returned.get(calledBy(node.callee) ?? node) ?? []).flatMap(inner);
    case 'ConditionalExpression':
      return [...inner(node.consequent), ...inner(node.alternate)];
    case 'LogicalExpression':
      return [...inner(node.left), ...inner(node.right)];
    case 'BinaryExpression':
      return [[node.left, node.right].map((side) => inner(side as AnyNode)[0] ?? '…').join('')];
    default:
      return [];
  }
}

/** Arguments of all calls for a parameter of the function around `node`. */
export function givenTo(node: AnyNode | null | undefined): readonly (AnyNode | undefined)[] {
  const around = node?.type === 'Identifier' ? functionAround(node) : undefined;
  if (node?.type !== 'Identifier' || around?.type !== 'FunctionDeclaration') return [];
  const at = around.params.findIndex((one) => one.type === 'Identifier' && one.name === node.name);
  const named = at < 0 ? [] : (calls.get(around.id?.name) ?? []);
  return named.filter(({ callee }) => calledBy(callee) === around).map((call) => call.arguments[at]);
}

/** The function that a call resolves to. */
export function calledBy(callee: AnyNode): AnyNode | undefined {
  return callee.type === 'Identifier' ? constantOf(callee.name, callee) : undefined;
}

/** Possible values of a table look-up: `TABLE[key]`. */
function valuesOf({ computed, object }: AnyNode & { readonly type: 'MemberExpression' }): readonly AnyNode[] {
  const table = computed && object.type === 'Identifier' ? constantOf(object.name, object) : undefined;
  if (table?.type !== 'ObjectExpression') return [];
  return table.properties.flatMap((one) => (one.type === 'Property' ? [one.value as AnyNode] : []));
}

function templateText({ quasis, expressions }: AnyNode & { readonly type: 'TemplateLiteral' }): string {
  return quasis
    .map(({ value }, at) => `${value.cooked ?? ''}${holeOf(expressions[at] as AnyNode | undefined)}`)
    .join('');
}

/** The text for an expression in a template: the value of a module's constant, otherwise a placeholder. */
function holeOf(node: AnyNode | undefined): string {
  switch (node?.type) {
    case undefined:
      return '';
    case 'Identifier':
      return (CONSTANT.test(node.name) ? textsOf(node)[0] : undefined) ?? `{${node.name}}`;
    case 'MemberExpression':
      return node.property.type === 'Identifier' ? `{${node.property.name}}` : '…';
    case 'CallExpression':
      return countedText(node);
    default:
      return '…';
  }
}

/** The plural text of `counted` and `countedOf`, with a placeholder for the number: `{selected} namespaces`. */
function countedText({ callee, arguments: given }: AnyNode & { readonly type: 'CallExpression' }): string {
  const [first, ...more] = given as AnyNode[];
  const name = callee.type === 'Identifier' ? callee.name : '';
  const words = more.flatMap((one) => textsOf(one.type === 'ArrayExpression' ? one.elements[1] : one));
  if (name === 'counted') return `${holeOf(first)} ${words[1] ?? `${words[0]}s`}`;
  return name === 'countedOf' ? `${holeOf(first)} of ${holeOf(more[0])} ${words.join(' ')}` : '…';
}
