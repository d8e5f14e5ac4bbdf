/**
 * Findings as SARIF 2.1.0, for GitHub, GitLab and editors.
 *
 * Source of the format: OASIS, Static Analysis Results Interchange Format 2.1.0, §3; GitHub, "SARIF support for code scanning".
 */
import { defined } from '../core/record.ts';
import { jsonText } from '../core/text.ts';
import { VERSION } from '../core/version.ts';

/** A problem in a file, or of an object. */
export interface FileFinding {
  readonly severity: string;
  /** ID of the check: stable, for programs. */
  readonly check: string;
  /** The path as on the command line. */
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
  /** The object, such as `Pod/web/shop-1`; empty for the whole cluster or file. */
  readonly subject: string;
  /** The field of the object. */
  readonly path?: string;
  readonly message: string;
}

/** The message, with the object and the field as prefix, if any. */
export function findingText({ subject, path = '', message }: FileFinding): string {
  const about = [subject, path].filter((part) => part !== '').join(' ');
  return about === '' ? message : `${about}: ${message}`;
}

const SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json';
const DOCUMENTS = 'https://pullwright.dev';

/** The log of one run, as JSON. Findings without a line get line 1, because viewers ignore findings without one. */
export function sarifText(findings: readonly FileFinding[]): string {
  const codes = [...new Set(findings.map(({ check }) => check))].sort();
  const driver = {
    name: 'pullwright',
    version: VERSION,
    informationUri: DOCUMENTS,
    rules: codes.map(ruleOf),
  };
  const results = findings.map((finding) => resultOf(finding, codes.indexOf(finding.check)));
  return jsonText({
    $schema: SCHEMA,
    version: '2.1.0',
    runs: [{ tool: { driver }, columnKind: 'utf16CodeUnits', results }],
  });
}

function ruleOf(id: string): object {
  const words = id.replace(/(?<=[a-z0-9])(?=[A-Z])/g, ' ').toLowerCase();
  const text = `${words[0]?.toUpperCase() ?? ''}${words.slice(1)}`;
  const help = `Each result shows the problem and the fix; see "${id}" in docs/reference/errors.md.`;
  return { id, shortDescription: { text }, fullDescription: { text }, help: { text: help } };
}

function resultOf(finding: FileFinding, ruleIndex: number): object {
  const { line = 1, column, file = '' } = finding;
  const region = { startLine: line, ...defined({ startColumn: column }) };
  return {
    ruleId: finding.check,
    ruleIndex,
    level: finding.severity === 'error' ? 'error' : 'warning',
    message: { text: findingText(finding) },
    locations: [{ physicalLocation: { artifactLocation: { uri: uriOf(file) }, region } }],
  };
}

/** A relative path as a relative URI, as the tools expect; an absolute path as a `file:` URI. */
function uriOf(path: string): string {
  const plain = path.replaceAll('\\', '/').replace(/^(?:\.\/)+/, '');
  const encoded = plain.split('/').map(encodeURIComponent).join('/');
  return plain.startsWith('/') ? `file://${encoded}` : encoded;
}

// Results as JUnit XML for CI systems. Source of the format: `testsuites` as written by Ant's JUnit task.

/** One checked subject. */
export interface JunitCase {
  /** The file. */
  readonly classname: string;
  readonly name: string;
  /** Why the check failed; absent if it passed. */
  readonly failure?: string;
  /** Additional output, without effect on the result. */
  readonly note?: string;
}

/** One suite with these cases. */
export function junitXml(suite: string, cases: readonly JunitCase[]): string {
  const failed = cases.filter(({ failure }) => failure !== undefined).length;
  const counts = `tests="${cases.length}" failures="${failed}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${counts}>`,
    `  <testsuite name="${xmlText(suite)}" ${counts}>`,
    ...cases.flatMap(caseLines),
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

function caseLines({ classname, name, failure, note }: JunitCase): readonly string[] {
  const head = `    <testcase classname="${xmlText(classname)}" name="${xmlText(name)}"`;
  const inside = [
    ...(failure === undefined ? [] : [`      <failure message="${xmlText(failure)}"/>`]),
    ...(note === undefined ? [] : [`      <system-out>${xmlText(note)}</system-out>`]),
  ];
  return inside.length === 0 ? [`${head}/>`] : [`${head}>`, ...inside, '    </testcase>'];
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Escapes text for XML; replaces control characters and lone surrogates, which XML does not allow. */
function xmlText(text: string): string {
  return text
    .toWellFormed()
    .replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
    .replace(/[\p{Cc}\uFFFE\uFFFF]/gu, ' ');
}
