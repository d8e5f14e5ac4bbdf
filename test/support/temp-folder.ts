/** Folders for what a test writes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const made: string[] = [];

process.once('exit', () => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

/** A new folder, which is removed with all that is in it when this process ends. */
export function tempFolder(): string {
  const [, program = ''] = process.argv;
  const folder = mkdtempSync(join(tmpdir(), `pullwright-${basename(program, '.test.ts')}-`));
  made.push(folder);
  return folder;
}
