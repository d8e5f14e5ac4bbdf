/** Tests that build on each other: after the first that fails, the others fail at once instead of waiting for what cannot come. */
import type { TestBody, TestSuite } from '../../support/suite.ts';

/** Adds tests to a suite in this way. */
export function steps(test: TestSuite): (name: string, body: TestBody) => void {
  let failed: string | undefined;
  return (name, body) =>
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
