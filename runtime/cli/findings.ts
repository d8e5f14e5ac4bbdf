/**
 * Findings as SARIF 2.1.0, which GitHub, GitLab and editors read.
 *
 * Source of the form: OASIS, Static Analysis Results Interchange Format 2.1.0, §3; what GitHub wants beyond it, from "SARIF support for code scanning".
 */
import { jsonText } from '../core/text.ts';
import { VERSION } from '../core/version.ts';

// What is wrong in files, for the tools of a pull request.

/** One thing that is wrong in a file. */
export interface FileFinding {
  readonly severity: string;
  /** CamelCase, stable. */
  readonly check: string;
  /** As it was named on the command line. */
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
  /** The object; empty for the file itself. */
  readonly subject: string;
  /** The field of the object. */
  readonly path?: string;
  readonly message: string;
}

/** What is wrong, behind the object and the field, if any. */
export function findingText({ subject, path = '', message }: FileFinding): string {
  const about = [subject, path].filter((part) => part !== '').join(' ');
  return about === '' ? message : `${about}: ${message}`;
}

const SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json';
const DOCUMENTS = 'https://pullwright.dev';

/**
 * The log of one run, as JSON. Findings without a line are at the first line of their file, since viewers leave out what has none.
 */
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
  const help = `Each result says what is the case and what to do; docs/reference/errors.md lists "${id}".`;
  return { id, shortDescription: { text }, fullDescription: { text }, help: { text: help } };
}

function resultOf(finding: FileFinding, ruleIndex: number): object {
  const { line = 1, column, file = '' } = finding;
  return {
    ruleId: finding.check,
    ruleIndex,
    level: finding.severity === 'error' ? 'error' : 'warning',
    message: { text: findingText(finding) },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: uriOf(file) },
          region: { startLine: line, ...(column === undefined ? {} : { startColumn: column }) },
        },
      },
    ],
  };
}

/** Relative to the folder of the run, as the tools want it; an absolute path becomes a `file:` address. */
function uriOf(path: string): string {
  const plain = path.replaceAll('\\', '/').replace(/^(?:\.\/)+/, '');
  const encoded = plain.split('/').map(encodeURIComponent).join('/');
  return plain.startsWith('/') ? `file://${encoded}` : encoded;
}

// Results as JUnit XML, which every CI system reads. Source of the form: the `testsuites` that Ant's JUnit task writes.

/** One checked subject. */
export interface JunitCase {
  /** The file. */
  readonly classname: string;
  readonly name: string;
  /** Why it does not hold; absent when it does. */
  readonly failure?: string;
  /** What else is to be said; it fails nothing. */
  readonly note?: string;
}

/**
 * One suite of these cases.
 */
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

/** Text for an attribute or an element; control characters and lone surrogates, which XML cannot hold, are dropped. */
function xmlText(text: string): string {
  return text
    .toWellFormed()
    .replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
    .replace(/[\p{Cc}\uFFFE\uFFFF]/gu, ' ');
}
