/** Our answers to a case file, as text: the same wherever the rules run, or the runtime makes a difference. */
import { isAccepted } from './comparison.ts';
import { readCases } from './read-cases.ts';
import type { ConformanceCase, ConformanceSuite } from './suite.ts';

/** One line a case: its name, whether the answer is as good as the expected one, and the answer. */
export async function answersOf(suite: ConformanceSuite, document: unknown): Promise<readonly string[]> {
  const { cases, unreadable } = readCases(suite, document);
  const lines: string[] = [...unreadable];
  for (const one of cases) lines.push(`${one.name}: ${await answerTo(suite, one)}`);
  await suite.finish?.();
  return lines;
}

async function answerTo(suite: ConformanceSuite, one: ConformanceCase): Promise<string> {
  try {
    const value = await suite.answer(one.input);
    return `${isAccepted(suite, value, one) ? 'accepted' : 'other'} ${JSON.stringify(value, plain)}`;
  } catch (error) {
    return `threw ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Values that JSON cannot represent. */
function plain(_key: string, value: unknown): unknown {
  if (value === undefined) return '(undefined)';
  if (value instanceof Map) return { '(map)': [...value] };
  if (value instanceof Set) return { '(set)': [...value] };
  return value;
}
