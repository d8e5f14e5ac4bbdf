/** Why a suite cannot run on this machine. A case file without a suite is not missing anything here: the runner fails it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ConformanceSuite } from './suite.ts';

export async function missingPart(name: string): Promise<string | undefined> {
  const file = join(import.meta.dirname, 'suites', `${name}.ts`);
  if (!existsSync(file)) return undefined;
  const { suite } = (await import(file)) as { suite: ConformanceSuite };
  return suite.missing?.();
}
