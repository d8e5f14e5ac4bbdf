/**
 * Findings as SARIF 2.1.0, which GitHub, GitLab and editors read.
 *
 * Source of the form: OASIS, Static Analysis Results Interchange Format 2.1.0, §3; what GitHub wants beyond it, from "SARIF support for code scanning".
 */
import { VERSION } from '../version.ts';
import { type FileFinding, findingText } from './findings.ts';

const SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json';
const DOCUMENTS = 'https://pullwright.dev';

/**
 * The log of one run, as a value for JSON. Findings without a line are at the first line of their file, since viewers leave out what has none.
 *
 * @example
 * ```ts
 * import { sarifLog } from './sarif.ts';
 * import assert from 'node:assert/strict';
 *
 * const log = sarifLog([{ severity: 'error', code: 'EntryInvalid', file: './a b.yaml', line: 3, subject: 'Secret/web/pull', message: 'no auth' }]);
 * const [result] = log.runs[0]?.results ?? [];
 * assert.equal(result?.locations[0]?.physicalLocation.artifactLocation.uri, 'a%20b.yaml');
 * assert.equal(result?.message.text, 'Secret/web/pull: no auth');
 * ```
 */
export function sarifLog(findings: readonly FileFinding[]): SarifLog {
  const codes = [...new Set(findings.map(({ code }) => code))].sort();
  const driver = {
    name: 'pullwright',
    version: VERSION,
    informationUri: DOCUMENTS,
    rules: codes.map(ruleOf),
  };
  const results = findings.map((finding) => resultOf(finding, codes.indexOf(finding.code)));
  return {
    $schema: SCHEMA,
    version: '2.1.0',
    runs: [{ tool: { driver }, columnKind: 'utf16CodeUnits', results }],
  };
}

/** As far as it is written here. */
export interface SarifLog {
  readonly $schema: string;
  readonly version: '2.1.0';
  readonly runs: readonly {
    readonly tool: { readonly driver: { readonly name: string; readonly rules: readonly SarifRule[] } };
    readonly columnKind: 'utf16CodeUnits';
    readonly results: readonly SarifResult[];
  }[];
}

interface SarifRule {
  readonly id: string;
  readonly shortDescription: SarifText;
  readonly fullDescription: SarifText;
  readonly help: SarifText;
}

interface SarifResult {
  readonly ruleId: string;
  readonly ruleIndex: number;
  readonly level: FileFinding['severity'];
  readonly message: SarifText;
  readonly locations: readonly {
    readonly physicalLocation: {
      readonly artifactLocation: { readonly uri: string };
      readonly region: { readonly startLine: number; readonly startColumn?: number };
    };
  }[];
}

interface SarifText {
  readonly text: string;
}

function ruleOf(id: string): SarifRule {
  const words = id.replace(/(?<=[a-z0-9])(?=[A-Z])/g, ' ').toLowerCase();
  const text = `${words[0]?.toUpperCase() ?? ''}${words.slice(1)}`;
  const help = `Each result says what is the case and what to do; docs/reference/errors.md lists "${id}".`;
  return { id, shortDescription: { text }, fullDescription: { text }, help: { text: help } };
}

function resultOf(finding: FileFinding, ruleIndex: number): SarifResult {
  const { line = 1, column } = finding;
  return {
    ruleId: finding.code,
    ruleIndex,
    level: finding.severity,
    message: { text: findingText(finding) },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: uriOf(finding.file) },
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
