// deadline: 600 s
// needs: Go
/** How YAML is read and written, against what kubectl, the kubelet and the API server make of the same text. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parse } from 'yaml';
import { parseYaml, toYaml } from '../../../runtime/kube/yaml.ts';
import { test } from '../../support/suite.ts';
import { type Answer, askKubernetes, caseCount, compareAll, SEED, textOf } from './oracle.ts';
import { DOCUMENT, WRITTEN } from './yaml-questions.ts';

const cases = caseCount(1500);

function ours(text: string): { readonly value?: unknown; readonly error?: string } {
  try {
    return { value: JSON.parse(JSON.stringify(parseYaml(text) ?? null)) };
  } catch (error) {
    return { error: String(error).split('\n')[0] ?? '' };
  }
}

/**
 * Go's loose reading silently drops a duplicate key: we reject it, as its strict reading does. But strict
 * reading also rejects an explicit key that overrides a merged one, which is the purpose of merging.
 */
function theirs(text: string, answer: Answer): { readonly value?: unknown; readonly error?: string } {
  const error = textOf(answer, 'error') || (text.includes('<<: ') ? '' : textOf(answer, 'strictError'));
  if (error !== '') return { error };
  return {
    value: JSON.parse(textOf(answer, 'json'), (_key, value) => (value === 0 ? 0 : (value as unknown))),
  };
}

test(`${cases} random documents are read alike`, () => {
  const texts = fc.sample(DOCUMENT, { numRuns: cases, seed: SEED });
  const answers = askKubernetes(texts.map((Text) => ({ Ask: 'yaml', Text })));
  compareAll(texts, answers, (text, answer) => {
    const [mine, go] = [ours(text), theirs(text, answer)];
    const about = `Go: ${JSON.stringify(go)}\nours: ${JSON.stringify(mine)}`;
    assert.equal(mine.error === undefined, go.error === undefined, about);
    assert.deepEqual(mine.value, go.value, about);
  });
});

test(`${cases} random texts are written so that all read them alike`, () => {
  const texts = fc.sample(WRITTEN, { numRuns: cases, seed: SEED });
  const values = texts.map((text) => ({ [text]: text, list: [text, { name: text }] }));
  const answers = askKubernetes(
    values.map((value) => ({ Ask: 'yaml', Text: toYaml(value, { lineWidth: 0 }) })),
  );
  compareAll(values, answers, (value, answer) => {
    const written = toYaml(value, { lineWidth: 0 });
    for (const read of [JSON.parse(textOf(answer, 'json') || 'null'), parseYaml(written), parse(written)])
      assert.deepEqual(read, value, `written as ${JSON.stringify(written)}`);
  });
});
