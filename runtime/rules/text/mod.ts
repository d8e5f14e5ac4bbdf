/**
 * Text for people: positions, tables, wrapping, and what was probably meant.
 *
 * - `capped.ts`: Long lists for people: the beginning, and how many more there are
 * - `counted.ts`: Numbers before nouns: one thing is not "1 things"
 * - `findings.ts`: What is wrong in files, for the tools of a pull request
 * - `json-text.ts`: JSON for people and for programs that read what is printed: indented by two, with a line end
 * - `junit.ts`: Results as JUnit XML, which every CI system reads
 * - `near-word.ts`: What somebody who mistyped a word may have meant
 * - `position.ts`: Lines and columns of a text, both counted from 1, columns in UTF-16 units
 * - `printable.ts`: Control characters as escapes, so that no text of somebody else's choice is obeyed by a terminal or a CI system
 * - `records.ts`: Rows for a terminal
 * - `yaml-nodes.ts`: Keys that stand twice in a map of YAML, and aliases without end
 * - `sarif.ts`: Findings as SARIF, which GitHub, GitLab and editors read
 * - `table.ts`: Columns of text for people
 * - `trim.ts`: Characters taken off the ends of a text, in time linear in its length
 * - `wrap.ts`: Long lines for narrow terminals
 * - `yaml-mistake.ts`: What is wrong with a text that is no YAML, in words that hold nothing of the text
 *
 * @module
 */
export {};
