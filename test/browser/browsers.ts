/**
 * Real browsers for tests: Debian's Chromium and Firefox, driven by playwright-core. Nothing is downloaded; a browser that is
 * not there is a skip with its reason, and in `.ci/run` a failure.
 */
import { existsSync } from 'node:fs';
import { type Browser, chromium, firefox, type Page } from 'playwright-core';
import type { TestSuite } from '../support/suite.ts';

/** Preferred colour scheme. */
export type Theme = 'light' | 'dark';

/** Options of a new page. */
export interface PageOptions {
  /** @default {light} */
  readonly theme?: Theme;
  /** In CSS pixels. @default {1280} */
  readonly width?: number;
  /** @default {800} */
  readonly height?: number;
  /** Takes any certificate, for a server of the test. @default {false} */
  readonly anyCertificate?: boolean;
}

/** One browser of this machine. */
export interface TestBrowser {
  readonly name: 'chromium' | 'firefox';
  /** An empty page in a context of its own: no cookies, nothing stored. Closed with the browser. */
  page(options?: PageOptions): Promise<Page>;
}

interface Installed {
  readonly name: TestBrowser['name'];
  readonly path: string;
  readonly debian: string;
  readonly launch: (theme: Theme) => Promise<Browser>;
}

const CHROMIUM = '/usr/bin/chromium';
const FIREFOX = '/usr/bin/firefox-esr';

const INSTALLED: readonly Installed[] = [
  {
    name: 'chromium',
    path: CHROMIUM,
    debian: 'chromium',
    // Root, as in a container, cannot have the sandbox; /dev/shm is small there.
    launch: () =>
      chromium.launch({
        executablePath: CHROMIUM,
        args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
      }),
  },
  {
    name: 'firefox',
    path: FIREFOX,
    debian: 'firefox-esr',
    // Debian's Firefox speaks WebDriver BiDi, which has no word for the theme: it is a preference of the profile.
    launch: (theme) =>
      firefox.launch({
        channel: 'moz-firefox',
        executablePath: FIREFOX,
        firefoxUserPrefs: { 'layout.css.prefers-color-scheme.content-override': theme === 'dark' ? 0 : 1 },
      }),
  },
];

/**
 * Adds the tests that `body` registers, once for each browser; a browser is started with its first page and closed at the end.
 *
 * @example
 * ```ts
 * inBrowsers(test, (browser, title) => {
 *   test(title('opens'), async () => { const page = await browser.page(); … });
 * });
 * ```
 */
export function inBrowsers(
  test: TestSuite,
  body: (browser: TestBrowser, title: (text: string) => string) => void,
): void {
  for (const installed of INSTALLED) {
    const { name, path, debian } = installed;
    if (!existsSync(path)) {
      test.skip(`in ${name}`, `${path} is not there: apt-get install ${debian}`);
      continue;
    }
    const running = new Map<Theme, Promise<Browser>>();
    body({ name, page: (options) => openPage(installed, running, options) }, (text) => `${name}: ${text}`);
    test.lastly(`${name} is closed`, async () => {
      for (const browser of running.values()) await (await browser).close();
    });
  }
}

async function openPage(
  { name, launch }: Installed,
  running: Map<Theme, Promise<Browser>>,
  { theme = 'light', width = 1280, height = 800, anyCertificate = false }: PageOptions = {},
): Promise<Page> {
  const key = name === 'chromium' ? 'light' : theme;
  const browser = running.get(key) ?? launch(key);
  running.set(key, browser);
  const context = await (await browser).newContext({
    viewport: { width, height },
    ignoreHTTPSErrors: anyCertificate,
    ...(name === 'chromium' ? { colorScheme: theme } : {}),
  });
  return await context.newPage();
}
