/** A structure that was learned, as text of a Go template that makes YAML. */

import { toYaml } from '../../runtime/kube/yaml.ts';
import { PullwrightError } from '../../runtime/rules/errors.ts';
import type { Case, Entry, Node, Tree } from './learn.ts';
import { MARK, REPEAT, YAML_TEXT } from './marks.ts';
import type { ChartValue, Setting } from './settings.ts';

/** `object`: texts between quotes, as JSON. `text`: as `toYaml` writes them, for YAML that is itself a text. */
type Style = 'object' | 'text';

/** Prints with the names of these settings. */
export class TemplatePrinter {
  readonly #settings: readonly Setting[];
  readonly #style: Style;

  constructor(settings: readonly Setting[], style: Style = 'object') {
    this.#settings = settings;
    this.#style = style;
  }

  /** Lines of YAML with the template's actions between them. */
  block(node: Node, depth = 0): readonly string[] {
    if (node.kind === 'value')
      return this.#choice(node.tree, (json) => this.#static(JSON.parse(json) as ChartValue, depth));
    return node.entries.flatMap((entry) => this.#when(entry.when, this.#entry(entry, node.kind, depth)));
  }

  /** `eq $mode "own"` and the like. `true` and `false` where nothing decides. */
  condition(tree: Tree): string {
    if ('is' in tree) return tree.is;
    const [one, other, ...more] = tree.cases;
    if (one !== undefined && other !== undefined && more.length === 0)
      return this.#either(tree.by, one, other);
    const ways = tree.cases.flatMap(([samples, tree_]): readonly string[] => {
      const then = this.condition(tree_);
      if (then === 'false') return [];
      const here = this.#isOneOf(tree.by, samples);
      return [then === 'true' ? here : `and (${here}) (${then})`];
    });
    const [only = 'false'] = ways;
    return ways.length > 1 ? `or ${ways.map((way) => `(${way})`).join(' ')}` : only;
  }

  /** Where one of two cases settles it, the other need not ask for its own. */
  #either(by: number, one: Case, other: Case): string {
    const conditions = [one, other].map((each) => ({
      here: this.#isOneOf(by, each[0]),
      below: this.condition(each[1]),
    }));
    for (const [{ here, below } = NEVER, { here: there, below: otherwise } = NEVER] of [
      conditions,
      conditions.toReversed(),
    ]) {
      if (below === 'true') return otherwise === 'false' ? here : `or (${here}) (${otherwise})`;
      if (below === 'false') return otherwise === 'true' ? there : `and (${there}) (${otherwise})`;
    }
    return `or ${conditions.map(({ here, below }) => `(and (${here}) (${below}))`).join(' ')}`;
  }

  /** A text with marks, as an expression. */
  expression(text: string): string {
    const names = [...text.matchAll(MARK)].map(([, name = '']) => this.#markValue(name));
    const format = JSON.stringify(text.replaceAll('%', '%%').replace(MARK, '%s'));
    if (names.length === 0) return JSON.stringify(text);
    return format === '"%s"' ? (names[0] ?? '') : `printf ${format} ${names.join(' ')}`;
  }

  #entry({ key, node }: Entry, kind: 'map' | 'list', depth: number): readonly string[] {
    if (kind === 'list') return this.#item(node, depth);
    const pad = '  '.repeat(depth);
    const head = `${pad}${this.#key(key)}:`;
    if (node.kind === 'value')
      return this.#choice(node.tree, (json) => this.#pair(head, JSON.parse(json) as ChartValue, depth));
    if (isText(node)) return [`${head} {{ include "pullwright.config" . | toJson }}`];
    const full = [head, ...this.block(node, depth + 1)];
    const empty = `${head} ${node.kind === 'map' ? '{}' : '[]'}`;
    return this.#choice(node.filled, (filled) => (filled === 'true' ? full : [empty]));
  }

  #item(node: Node, depth: number): readonly string[] {
    if (node.kind === 'value')
      return this.#choice(node.tree, (json) => this.#staticItem(JSON.parse(json) as ChartValue, depth));
    return ['  '.repeat(depth) + '-', ...this.block(node, depth + 1)];
  }

  #when(tree: Tree, lines: readonly string[]): readonly string[] {
    const condition = this.condition(tree);
    if (condition === 'true') return lines;
    return [`{{- if ${condition} }}`, ...lines, '{{- end }}'];
  }

  #choice(tree: Tree, print: (value: string) => readonly string[]): readonly string[] {
    if ('is' in tree) return print(tree.is);
    const branches = tree.cases.flatMap(([samples, then], index) => {
      const isLast = index === tree.cases.length - 1;
      const head = `{{- ${index === 0 ? '' : 'else '}if ${this.#isOneOf(tree.by, samples)} }}`;
      return [isLast ? '{{- else }}' : head, ...this.#choice(then, print)];
    });
    return [...branches, '{{- end }}'];
  }

  #static(json: ChartValue, depth: number): readonly string[] {
    if (Array.isArray(json))
      return (json as readonly ChartValue[]).flatMap((item) => this.#staticItem(item, depth));
    if (typeof json !== 'object' || json === null) return [this.#scalar(json)];
    const pad = '  '.repeat(depth);
    return Object.entries(json).flatMap(([key, value]) =>
      this.#pair(`${pad}${this.#key(key)}:`, value, depth),
    );
  }

  #pair(head: string, value: ChartValue, depth: number): readonly string[] {
    if (typeof value !== 'object' || value === null) return [`${head} ${this.#scalar(value)}`];
    if (Object.keys(value).length === 0) return [`${head} ${Array.isArray(value) ? '[]' : '{}'}`];
    return [head, ...this.#static(value, depth + 1)];
  }

  #staticItem(item: ChartValue, depth: number): readonly string[] {
    const pad = '  '.repeat(depth);
    if (typeof item !== 'object' || item === null) return [`${pad}- ${this.#scalar(item)}`];
    if (!Array.isArray(item) && REPEAT in item)
      return this.#repeated(item as Readonly<Record<string, ChartValue>>, depth);
    if (Object.keys(item).length === 0) return [`${pad}- ${Array.isArray(item) ? '[]' : '{}'}`];
    const [first = '', ...rest] = this.#static(item, depth + 1);
    return [`${pad}- ${first.trimStart()}`, ...rest];
  }

  #repeated(item: Readonly<Record<string, ChartValue>>, depth: number): readonly string[] {
    const setting = this.#settings[Number(item[REPEAT])];
    if (setting === undefined) throw unprintable('a list that is no value of the chart');
    const lines = this.#static(item['items'] ?? [], depth);
    return [`{{- range ${dig(setting, '(list)')} }}`, ...lines, '{{- end }}'];
  }

  #key(key: string): string {
    if (/[\uE000-\uE004{]/.test(key)) throw unprintable(`key ${JSON.stringify(key)}`);
    return toYaml(key, { lineWidth: 0 }).trim();
  }

  #scalar(value: ChartValue): string {
    if (typeof value !== 'string') return JSON.stringify(value);
    const number = /^\uE000#(\d+)\uE001$/.exec(value)?.[1];
    if (number !== undefined) return `{{ ${this.#variable(Number(number))} }}`;
    if (value.search(MARK) >= 0) return this.#withMarks(value);
    const plain = toYaml(value, { lineWidth: 0 }).trim();
    return (plain.includes('\n') ? JSON.stringify(value) : plain).replaceAll('{{', '{{ "{{" }}');
  }

  #withMarks(text: string): string {
    return `{{ ${this.expression(text)} | ${this.#style === 'object' ? 'toJson' : 'toYaml'} }}`;
  }

  #markValue(name: string): string {
    if (name === '.') return '.';
    if (name === 'digest') return '(include "pullwright.config" . | sha256sum | trunc 16)';
    return this.#variable(Number(name));
  }

  #isOneOf(by: number, samples: readonly number[]): string {
    const setting = this.#settings[by];
    if (setting === undefined) throw unprintable('a decision by nothing');
    if (setting.type !== 'choice') return `${samples.includes(0) ? 'eq' : 'ne'} ${this.#variable(by)} ""`;
    const texts = samples.map((one) => (one === 0 ? '""' : quoted(setting.samples[one - 1])));
    return `eq ${this.#variable(by)} ${texts.join(' ')}`;
  }

  #variable(index: number): string {
    const setting = this.#settings[index];
    if (setting === undefined) throw unprintable('a mark of no value of the chart');
    return variableOf(setting);
  }
}

const NEVER = { here: 'false', below: 'false' };

/** `$systems_verify_warnDays` */
export function variableOf({ path }: Setting): string {
  return `$${path.join('_').replaceAll('-', '_')}`;
}

/** The lines that set the variables that `text` uses: texts, `""` for what is not given. */
export function variableLines(settings: readonly Setting[], text: string): readonly string[] {
  const words = new Set(text.split(/[^\w$]+/));
  const used = settings.filter((one) => words.has(variableOf(one)));
  const lines = used.map((setting) => `{{- ${variableOf(setting)} := ${reading(setting)} }}`);
  const needed = lines.length > 0 || text.includes('dig ');
  return needed ? ['{{- $v := include "pullwright.values" . | fromJson }}', ...lines] : [];
}

function reading(setting: Setting): string {
  if (setting.type === 'section') return `ternary "on" "" (kindIs "map" (${dig(setting, '""')}))`;
  if (setting.type === 'list') return `ternary "on" "" (gt (len (${dig(setting, '(list)')})) 0)`;
  // Numbers of values are floats, which would print as 1e+06.
  if (setting.type === 'number') return `${dig(setting, '""')} | toJson | trimAll "\\""`;
  return `${dig(setting, JSON.stringify(setting.otherwise ?? ''))} | toString`;
}

function dig({ path }: Setting, otherwise: string): string {
  return `dig ${path.map((part) => JSON.stringify(part)).join(' ')} ${otherwise} $v`;
}

/** What the template compares: texts, also of booleans and numbers. */
function quoted(sample: ChartValue | undefined): string {
  return typeof sample === 'string' ? JSON.stringify(sample) : `"${JSON.stringify(sample)}"`;
}

function isText(node: Node): boolean {
  return node.kind === 'map' && node.entries[0]?.key === YAML_TEXT;
}

function unprintable(what: string): PullwrightError {
  return new PullwrightError(`The chart cannot express ${what}`, { code: 'ChartTemplate' });
}
