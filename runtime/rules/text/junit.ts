/** Results as JUnit XML, which every CI system reads. Source of the form: the `testsuites` that Ant's JUnit task writes. */

/** One thing that was judged. */
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
 *
 * @example
 * ```ts
 * import { junitXml } from './junit.ts';
 * import assert from 'node:assert/strict';
 *
 * const xml = junitXml('pull credentials', [{ classname: 'a.yaml', name: 'a <b>', failure: 'no "key"' }, { classname: 'a.yaml', name: 'c' }]);
 * assert.match(xml, /<testsuites tests="2" failures="1">/);
 * assert.match(xml, /name="a &lt;b&gt;">\n {6}<failure message="no &quot;key&quot;"\/>/);
 * ```
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

/** Text for an attribute or an element; what XML cannot hold, control characters and halves of pairs, is left out. */
function xmlText(text: string): string {
  return text
    .toWellFormed()
    .replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
    .replace(/[\p{Cc}\uFFFE\uFFFF]/gu, ' ');
}
