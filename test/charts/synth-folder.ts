/** `pullwright synth` as a process in a scratch folder, as people and pipelines run it. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ProcessResult, runMain } from '../support/process.ts';

export const root: string = new URL('../..', import.meta.url).pathname;

/** A folder to run in; relative paths of a run are below it. */
export class SynthFolder {
  readonly scratch: string = mkdtempSync(join(tmpdir(), 'pullwright-synth-'));

  synth(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<ProcessResult> {
    return runMain(['synth', ...args], {
      cwd: this.scratch,
      env: { ...process.env, ...env },
    });
  }

  close(): void {
    rmSync(this.scratch, { recursive: true });
  }
}

/** Every file below the folder with its text, sorted by path. */
export function snapshot(folder: string): readonly (readonly [string, string])[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => [path.slice(folder.length), readFileSync(path, 'utf8')]);
}
