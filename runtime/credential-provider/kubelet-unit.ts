/**
 * The variable through which the unit of a kubelet accepts more flags: a separate word of the command, such as
 * `$KUBELET_EXTRA_ARGS` in the unit of kubeadm.
 *
 * A drop-in with a copy of the command would be stale as soon as the unit changes: with a release that drops a flag, the kubelet
 * would not start.
 *
 * Source of the rule: systemd.syntax(7), systemd.exec(5), and the command lines of systemd.service(5).
 */
import { basename } from 'node:path';
import { CREDENTIAL_PROVIDER } from './platform.ts';

/** `name=value` of the section `[Service]`. */
interface Setting {
  readonly name: string;
  readonly value: string;
}

/** A variable of flags in the kubelet's command. */
export type FlagVariable = Readonly<NonNullable<ReturnType<typeof flagVariable>>>;

/** The settings of a unit and its drop-ins in the order in which they apply. */
export function serviceSettings(texts: readonly string[]): readonly Setting[] {
  return texts.flatMap((text) => {
    let section = '';
    return joinedLines(text, true).flatMap((line): readonly Setting[] => {
      if (line.startsWith('[')) section = line;
      const equals = line.indexOf('=');
      if (section !== '[Service]' || equals <= 0) return [];
      return [{ name: line.slice(0, equals).trim(), value: line.slice(equals + 1).trim() }];
    });
  });
}

/** Lines without comments, continued after a backslash; comments in between are skipped. */
function joinedLines(text: string, isUnit: boolean): readonly string[] {
  const lines: string[] = [];
  let open: string | undefined;
  for (const raw of text.split('\n')) {
    const line = raw.trim();
    if (line.startsWith('#') || line.startsWith(';')) continue;
    const goesOn = line.endsWith('\\');
    const part = goesOn ? line.slice(0, -1) : line;
    const whole = open === undefined ? part : `${open}${isUnit ? ' ' : ''}${part}`;
    open = goesOn ? whole : undefined;
    if (!goesOn && whole !== '') lines.push(whole);
  }
  return open === undefined ? lines : [...lines, open];
}

/** Paths of the unit's EnvironmentFiles, without the dash of an optional one. */
export function environmentFiles(settings: readonly Setting[]): readonly string[] {
  return valuesOf(settings, 'EnvironmentFile').map((value) => (wordsOf(value)[0] ?? '').replace(/^-/, ''));
}

/** A command of systemd.service(5). */
interface UnitCommand {
  readonly words: readonly string[];
  /** Whether systemd does not expand variables. */
  readonly isVerbatim: boolean;
}

/** The effective command; undefined when the unit has none. */
export function kubeletCommand(settings: readonly Setting[]): UnitCommand | undefined {
  const command = valuesOf(settings, 'ExecStart').at(-1);
  if (command === undefined) return undefined;
  const [first = '', ...rest] = wordsOf(command);
  const [prefix = ''] = /^[@:+!|-]*/.exec(first) ?? [];
  return { words: [first.slice(prefix.length), ...rest], isVerbatim: prefix.includes(':') };
}

/** Values of a list setting; an empty value resets the list. */
function valuesOf(settings: readonly Setting[], name: string): readonly string[] {
  let values: string[] = [];
  for (const setting of settings) {
    if (setting.name !== name) continue;
    values = setting.value === '' ? [] : [...values, setting.value];
  }
  return values;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', s: ' ' };

/** Parts of a command line: quoted text, an escaped character, other text, blanks. */
const PIECE = /"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|\\(.)|([^\s"'\\]+)|\s+/gs;

/** Words as systemd splits them: adjacent parts without blanks are one word. */
function wordsOf(text: string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  for (const [whole, double, single, escaped, plain] of text.matchAll(PIECE)) {
    const quoted = double ?? single;
    const piece = quoted === undefined ? (plain ?? escapedChar(escaped)) : unescaped(quoted);
    if (piece === undefined && whole.trim() === '') {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? '') + (piece ?? '');
  }
  return word === undefined ? words : [...words, word];
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, (_, char: string) => escapedChar(char) ?? '');
}

function escapedChar(char: string | undefined): string | undefined {
  return char === undefined ? undefined : (ESCAPES[char] ?? char);
}

const SHELLS: readonly string[] = ['sh', 'bash', 'dash'];

/** Variables for flags of an administrator, in order of preference. */
const MADE_FOR_IT: readonly string[] = [
  CREDENTIAL_PROVIDER.dropInVariable,
  'KUBELET_EXTRA_ARGS',
  'KUBELET_ARGS',
  'KUBELET_OPTS',
];

/**
 * The variable to put flags into; undefined when the command has none. `files`: texts of the EnvironmentFiles, in order.
 * `command`: from the settings, or as systemd has loaded it.
 */
export function flagVariable(
  settings: readonly Setting[],
  files: readonly string[],
  { words, isVerbatim }: UnitCommand = NONE,
) {
  const kubelet = words.findIndex((word) => basename(word) === 'kubelet');
  if (kubelet === -1 || isVerbatim || SHELLS.includes(basename(words[0] ?? ''))) return undefined;
  // The last one wins when a flag is repeated.
  const last = words.findLastIndex((word) => word.startsWith('--image-credential-provider-'));
  const name = MADE_FOR_IT.find((one) => words.indexOf(`$${one}`) > Math.max(kubelet, last));
  if (name === undefined) return undefined;
  const byFile = lastValue(files.flatMap(fileVariables), name);
  const byUnit = unitValue(settings, name);
  // Its current value, empty when not set; and whether an EnvironmentFile sets it, which wins over Environment settings.
  return { name, value: (byFile ?? byUnit ?? '').trim(), isSetByFile: byFile !== undefined };
}

/** For a unit without a command. */
const NONE: UnitCommand = { words: [], isVerbatim: true };

/** Value of a variable in the unit, specifiers not expanded. */
export function unitValue(settings: readonly Setting[], name: string): string | undefined {
  return lastValue(valuesOf(settings, 'Environment').flatMap(wordsOf).map(variableOf), name);
}

function variableOf(word: string): Setting {
  const equals = word.indexOf('=');
  return { name: word.slice(0, Math.max(0, equals)), value: word.slice(equals + 1) };
}

/** Variables of a file; one pair of quotes around a value is removed. */
function fileVariables(text: string): readonly Setting[] {
  return joinedLines(text, false).map((line) => {
    const { name, value } = variableOf(line);
    const bare = value.trim();
    const quote = bare.charAt(0);
    const isQuoted = bare.length > 1 && (quote === '"' || quote === "'") && bare.endsWith(quote);
    return { name: name.trim(), value: isQuoted ? bare.slice(1, -1).replaceAll('\\"', '"') : bare };
  });
}

function lastValue(variables: readonly Setting[], name: string): string | undefined {
  return variables.findLast((variable) => variable.name === name)?.value;
}

/** Arguments of the kubelet, with variables expanded as systemd does. */
export function kubeletArguments(
  settings: readonly Setting[],
  files: readonly string[],
  { words, isVerbatim }: UnitCommand = NONE,
): readonly string[] {
  if (isVerbatim) return words;
  const ofFiles = files.flatMap(fileVariables);
  const valueOf = (name: string): string => lastValue(ofFiles, name) ?? unitValue(settings, name) ?? '';
  return words.flatMap((word) => {
    const alone = /^\$([A-Za-z_]\w*)$/.exec(word)?.[1];
    if (alone !== undefined) return wordsOf(valueOf(alone));
    return [word.replace(/\$\{([A-Za-z_]\w*)\}/g, (_, name: string) => valueOf(name))];
  });
}

/** The value with the flags appended, as a line of a unit. Keeps specifiers in the value. */
export function unitLine({ name, value }: FlagVariable, flags: string): string {
  const text = `${name}=${value === '' ? '' : `${value} `}${flags.replaceAll('%', '%%')}`;
  return `Environment="${text.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`;
}

/** The same as a line of an EnvironmentFile. */
export function fileLine({ name, value }: FlagVariable, flags: string): string {
  const text = `${value === '' ? '' : `${value} `}${flags}`;
  return `${name}="${text.replace(/["\\$`]/g, '\\$&')}"`;
}

/** Provider flags of the kubelet's current command line. When `config` is missing, the kubelet runs no credential provider. */
export type KubeletPointers = Readonly<Partial<ReturnType<typeof kubeletPointers>>>;

/** The last value of each flag in a command line or a unit. */
export function kubeletPointers(text: string) {
  return {
    config: lastFlag(text, '--image-credential-provider-config'),
    binDir: lastFlag(text, '--image-credential-provider-bin-dir'),
  };
}

/** The last value of the flag on a line that is not a comment. */
function lastFlag(text: string, flag: string): string | undefined {
  const lines = text.replace(/\\\n/g, ' ').split('\n');
  return lines
    .filter((line) => !/^\s*[#;]/.test(line))
    .flatMap((line) => line.split(flag).slice(1))
    .flatMap((rest) => /^[= ]["']?([^\s"']+)/.exec(rest)?.[1] ?? [])
    .at(-1);
}
