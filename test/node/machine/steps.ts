/** Tests of a file that has a machine of its own. */
import { type TestBody, test } from '../../support/suite.ts';
import { machineFolder, runInside } from './namespaces.ts';

/** Runs `file` again inside a machine, where `register` adds the tests. */
export async function inMachine(file: string, register: () => Promise<void>): Promise<void> {
  if (machineFolder() === undefined) process.exitCode = await runInside(file);
  else await register();
}

let failed: string | undefined;

/** Adds a test that depends on the previous ones: after the first failure, the others fail at once instead of timing out. */
export function step(name: string, body: TestBody): void {
  test(name, async () => {
    if (failed !== undefined) throw new Error(`"${failed}" has failed before`);
    try {
      await body();
    } catch (error) {
      failed = name;
      throw error;
    }
  });
}
