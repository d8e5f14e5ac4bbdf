/** Documents of YAML as Kubernetes reads them. Keys that stand twice are refused in linear time, and aliases without end. */
import { type Document, LineCounter, parseAllDocuments, parseDocument, YAMLParseError } from 'yaml';
import { yamlWords } from '../rules/text/yaml-mistake.ts';
import { aliasTooMany, MOST_ALIASES, repeatedKeys } from '../rules/text/yaml-nodes.ts';
import { KUBERNETES_SCHEMA } from './yaml-schema.ts';

/** What the library is told, whoever asks: it would compare each key with all others. */
const OPTIONS = { ...KUBERNETES_SCHEMA, uniqueKeys: false, prettyErrors: false } as const;

/**
 * The one document, with its mistakes.
 *
 * @param lines learns where lines begin
 */
export function yamlDocument(text: string, lines: LineCounter): Document {
  return judged(parseDocument(text, { ...OPTIONS, lineCounter: lines, logLevel: 'silent' }), lines);
}

/** All documents of the text, each with its mistakes. */
export function yamlDocuments(text: string): readonly Document[] {
  const lines = new LineCounter();
  const found = parseAllDocuments(text, { ...OPTIONS, lineCounter: lines, logLevel: 'error' });
  return (Array.isArray(found) ? found : []).map((document) => judged(document, lines));
}

/** With the mistakes that the library did not look for, and their lines in the words of all. */
function judged(document: Document, lines: LineCounter): Document {
  const repeated = repeatedKeys(document.contents).map(
    ([start, end]) => new YAMLParseError([start, end], 'DUPLICATE_KEY', 'Map keys must be unique'),
  );
  const alias = aliasTooMany(document.contents);
  const many =
    alias === undefined
      ? []
      : [
          new YAMLParseError(
            [...alias],
            'RESOURCE_EXHAUSTION',
            `There are more than ${MOST_ALIASES} aliases`,
          ),
        ];
  const errors = [...document.errors, ...repeated, ...many].sort((a, b) => a.pos[0] - b.pos[0]);
  for (const error of errors) {
    const { line, col } = lines.linePos(error.pos[0]);
    error.message = `${yamlWords(error.message)} at line ${line}, column ${col}`;
  }
  document.errors = errors;
  return document;
}
