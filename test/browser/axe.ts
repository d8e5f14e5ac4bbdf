/** The accessibility rules of axe-core, run inside a page. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const SCRIPT = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Every rule that the page breaks, with the elements that break it: what `axe.run` calls violations. Contrast is one of them. */
export async function accessibilityProblems(page: Page): Promise<readonly string[]> {
  // Runs as an expression of the driver, because the policy of the page allows only its own scripts.
  await page.evaluate(SCRIPT);
  return await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { readonly axe: Axe };
    const { violations } = await axe.run();
    return violations.flatMap(({ id, help, nodes }) =>
      nodes.map(({ target }) => `${id} (${help}): ${target.join(' ')}`),
    );
  });
}

interface Axe {
  run(): Promise<{
    readonly violations: readonly {
      readonly id: string;
      readonly help: string;
      readonly nodes: readonly { readonly target: readonly string[] }[];
    }[];
  }>;
}
