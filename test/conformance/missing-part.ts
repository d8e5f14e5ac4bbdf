/** Why a suite cannot run on this machine. A case file without a suite is not missing anything here: the runner fails it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
// Suites are loaded by name, which the runner does not see: those of definitions need a control plane, built before the tests start.
import '../control-plane/build.ts';
import type { ConformanceSuite } from './suite.ts';

export async function missingPart(name: string): Promise<string | undefined> {
  const file = join(import.meta.dirname, 'suites', `${name}.ts`);
  if (!existsSync(file)) return undefined;
  const { suite } = (await import(file)) as { suite: ConformanceSuite };
  return suite.missing?.();
}
