/** What `pullwright validate` prints. */

import { toYaml } from '../../kube/yaml.ts';
import { capped } from '../../rules/text/capped.ts';
import { counted } from '../../rules/text/counted.ts';
import { type FileFinding, findingText } from '../../rules/text/findings.ts';
import { jsonText } from '../../rules/text/json-text.ts';
import { type JunitCase, junitXml } from '../../rules/text/junit.ts';
import { oneLined } from '../../rules/text/printable.ts';
import { type SarifLog, sarifLog } from '../../rules/text/sarif.ts';
import type { FileProblem } from './manifests.ts';

/** What is printed as JSON. */
export interface ValidateOutput {
  /** Number of things that were judged. */
  readonly judged: number;
  readonly problems: readonly FileProblem[];
}

/** What was judged, and what is wrong. */
export interface Judgement extends ValidateOutput {
  /** Those that hold them. */
  readonly files: readonly string[];
  /** Whether warnings fail too. */
  readonly strict: boolean;
}

/** @param isTTY whether a person's screen gets it, which one broken document must not fill */
export function inForm(
  form: 'text' | 'json' | 'yaml' | 'sarif' | 'junit',
  { judged, problems, files, strict }: Judgement,
  isTTY: boolean,
): string {
  switch (form) {
    case 'json':
      return jsonText<ValidateOutput>({ judged, problems });
    case 'yaml':
      return toYaml({ judged, problems }, { lineWidth: 0 });
    case 'sarif':
      return jsonText<SarifLog>(sarifLog(problems.map(findingOf)));
    case 'junit':
      return junitXml('pull secrets', casesOf(problems, files, strict));
    default:
      return asText(problems, judged, isTTY);
  }
}

function findingOf({ subject, path, ...problem }: FileProblem): FileFinding {
  return { ...problem, subject: [subject, path].filter((part) => part !== '').join(' ') };
}

/** A case for each problem, and one for each file that has none. A warning fails where warnings do. */
function casesOf(
  problems: readonly FileProblem[],
  files: readonly string[],
  strict: boolean,
): readonly JunitCase[] {
  const wrong = problems.map(findingOf).map(({ severity, file, line, code, ...what }): JunitCase => {
    const name = line === undefined ? code : `${code} at line ${line}`;
    const said = findingText(what);
    const fails = severity === 'error' || strict;
    return { classname: file, name, ...(fails ? { failure: said } : { note: `warning: ${said}` }) };
  });
  const named = new Set(problems.map(({ file }) => file));
  const well = files
    .filter((file) => !named.has(file))
    .map((file) => ({ classname: file, name: 'no problem' }));
  return [...wrong, ...well];
}

/** On a terminal, one broken document must not fill a person's screen; elsewhere each line may be looked for. */
function asText(problems: readonly FileProblem[], judged: number, isTTY: boolean): string {
  const lines = oneLined(problems).map(({ severity, file, line, column, subject, path, message, code }) => {
    const place = [file, line, column].filter((part) => part !== undefined).join(':');
    const what = [subject, path].filter((part) => part !== '').join(' ');
    return `${place}: ${severity}: ${what === '' ? '' : `${what}: `}${message} [${code}]`;
  });
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const shown = isTTY ? capped(lines, 200, 'pipe the output, or use --output json') : lines;
  return `${[...shown, `${judged} judged, ${counted(errors, 'error')}, ${counted(problems.length - errors, 'warning')}`].join('\n')}\n`;
}
