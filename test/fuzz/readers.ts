/**
 * What takes texts and bytes of others apart, found in the sources: every exported function that is given something of unknown
 * form, bytes or a value that is kept secret, and every one that is given a text and takes it apart (or has another of its file do it).
 */
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { type AnyNode, type FunctionDeclaration, type Pattern, parse } from 'acorn';

const ROOT = new URL('../..', import.meta.url).pathname;

const FOREIGN =
  /^(?:unknown|Uint8Array|Redacted<(?:string|Uint8Array)>|AsyncIterable<Uint8Array>)(?: \| undefined)?$/;
const TEXT = /^string(?: \| undefined)?$/;
/** What was caught is no text from outside. */
const CAUGHT = ['error', 'cause', 'reason'];
const METHODS = ['split', 'match', 'matchAll', 'exec', 'test'];
const CALLS = ['parseYaml', 'parseToml', 'parseDocument', 'parseAllDocuments', 'atob', 'readFileSync'];

/** `runtime/core/go/url.ts parseGoUrl`, sorted. */
export function readersInSources(): readonly string[] {
  return globSync(['runtime/**/*.ts', 'charts/**/*.ts'], { cwd: ROOT })
    .flatMap((file) => readersIn(readFileSync(join(ROOT, file), 'utf8')).map((name) => `${file} ${name}`))
    .sort();
}

/** Names of the readers in one file. */
export function readersIn(text: string): readonly string[] {
  // Types become blanks, so that places stay.
  const tree = parse(stripTypeScriptTypes(text), { ecmaVersion: 'latest', sourceType: 'module' });
  const functions = new Map<string, Found>();
  for (const statement of tree.body) {
    const isExported = statement.type === 'ExportNamedDeclaration';
    const node = isExported ? statement.declaration : statement;
    if (node?.type !== 'FunctionDeclaration') continue;
    functions.set(node.id.name, { ...foundIn(node, text), isExported });
  }
  return [...functions].flatMap(([name, { isExported, parameters }]) => {
    const isForeign = parameters.some((one) => FOREIGN.test(one.type) && !CAUGHT.includes(one.name));
    const hasText = parameters.some(({ type }) => TEXT.test(type));
    return isExported && (isForeign || (hasText && takesApart(name, functions, new Set()))) ? [name] : [];
  });
}

interface Found {
  readonly isExported?: boolean;
  readonly parameters: readonly { readonly name: string; readonly type: string }[];
  readonly takesApart: boolean;
  /** Whatever it names: some of it are functions of its file. */
  readonly named: ReadonlySet<string>;
}

function foundIn(node: FunctionDeclaration, text: string): Found {
  const named = new Set<string>();
  let isApart = false;
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('type' in value) {
      const part = value as AnyNode;
      if (part.type === 'Identifier') named.add(part.name);
      isApart ||= isTakingApart(part);
    }
    Object.values(value).forEach(visit);
  };
  visit(node.body);
  const parameters = node.params.map((parameter, index) => {
    const bare = parameter.type === 'AssignmentPattern' ? parameter.left : parameter;
    const until = node.params[index + 1]?.start ?? node.body.start;
    const type = text.slice(bare.end, until).replace(/^\??:\s*/, '');
    return { name: nameOf(bare), type: type.replace(/[,)=][\s\S]*$/, '').trim() };
  });
  return { parameters, takesApart: isApart, named };
}

function nameOf(pattern: Pattern): string {
  return pattern.type === 'Identifier' ? pattern.name : '';
}

function isTakingApart(node: AnyNode): boolean {
  if (node.type === 'NewExpression') return node.callee.type === 'Identifier' && node.callee.name === 'URL';
  if (node.type !== 'CallExpression') return false;
  const { callee } = node;
  if (callee.type === 'Identifier') return CALLS.includes(callee.name);
  if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier') return false;
  const { name } = callee.property;
  const isJson = callee.object.type === 'Identifier' && callee.object.name === 'JSON';
  return METHODS.includes(name) || (isJson && name === 'parse');
}

function takesApart(name: string, functions: ReadonlyMap<string, Found>, seen: Set<string>): boolean {
  const found = functions.get(name);
  if (found === undefined || seen.has(name)) return false;
  seen.add(name);
  return found.takesApart || [...found.named].some((other) => takesApart(other, functions, seen));
}
