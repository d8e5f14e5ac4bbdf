import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ConformanceSuite } from './suite.ts';

interface Module {
  readonly suite?: ConformanceSuite;
  readonly suites?: Readonly<Record<string, ConformanceSuite>>;
}

/** The module below `suites/` with the suite of a case file `<folder>/<name>`: its own, or the table of its folder. */
export function suiteModule(name: string): string {
  const own = `${name}.ts`;
  return existsSync(join(import.meta.dirname, 'suites', own)) ? own : `${name.split('/')[0]}/table.ts`;
}

/** The suite of a case file; undefined when there is none. */
export async function suiteOf(name: string): Promise<ConformanceSuite | undefined> {
  const file = join(import.meta.dirname, 'suites', suiteModule(name));
  if (!existsSync(file)) return undefined;
  const { suite, suites } = (await import(file)) as Module;
  return suite ?? suites?.[name.split('/')[1] ?? ''];
}
