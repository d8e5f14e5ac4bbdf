/** Asks the Go program beside this file, which runs Kubernetes' own code. */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';

const MODULE = join(import.meta.dirname, '../../control-plane');

/** Number of questions of a test: `fallback` in the gate, `PULLWRIGHT_CASES` in manual runs. */
export function caseCount(fallback: number): number {
  return Number(process.env['PULLWRIGHT_CASES'] ?? fallback);
}

/** The gate asks a fixed set; `PULLWRIGHT_SEED` asks another. */
export const SEED: number = Number(process.env['PULLWRIGHT_SEED'] ?? 20_261_121);

/** One answer, fields as the Go program names them. */
export type Answer = Readonly<Record<string, unknown>>;

/** All answers, in the order of the questions. Go builds the program once and keeps it in its own cache. */
export function askKubernetes(questions: readonly object[]): readonly Answer[] {
  const files = globSync(join(import.meta.dirname, '*.go')).sort();
  return askGo(['-C', MODULE, ...files], questions) as readonly Answer[];
}

/** The answers of the program that `go run` makes of these arguments. */
export function askGo(
  program: readonly string[],
  questions: readonly object[],
  env: Readonly<Record<string, string>> = {},
): readonly unknown[] {
  const ran = spawnSync('go', ['run', ...program], {
    input: questions.map((question) => JSON.stringify(question)).join('\n'),
    maxBuffer: 2 ** 30,
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  if (ran.status !== 0) throw new Error(`The oracle ended with ${String(ran.status)}:\n${ran.stderr}`);
  const lines = ran.stdout.split('\n').filter((line) => line !== '');
  if (lines.length !== questions.length)
    throw new Error(`The oracle gave ${lines.length} answers to ${questions.length} questions`);
  return lines.map((line) => JSON.parse(line) as unknown);
}

/** Runs `compare` for each question and its answer; a failure says which question it was, and how to ask it again. */
export function compareAll<Q, A>(
  questions: readonly Q[],
  answers: readonly A[],
  compare: (question: Q, answer: A) => void,
): void {
  for (const [index, question] of questions.entries()) {
    try {
      compare(question, answers[index] as A);
    } catch (error) {
      const asked = `seed ${SEED}, question ${index}: ${JSON.stringify(question)}`;
      throw new Error(`${asked}\n${String(error)}`, { cause: error });
    }
  }
}

/** A field that holds a text, or nothing. */
export function textOf(answer: Answer | undefined, field: string): string {
  const value = answer?.[field];
  return typeof value === 'string' ? value : '';
}
