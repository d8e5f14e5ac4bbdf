/** The browsers of Debian, driven by playwright-core: nothing is downloaded. */
import { existsSync } from 'node:fs';
import { type Browser, chromium, firefox } from 'playwright-core';

/** A browser that is there, or why it is not. */
export interface FoundBrowser {
  readonly name: 'chromium' | 'firefox';
  readonly missing?: string;
  open(): Promise<Browser>;
}

const CHROMIUM = '/usr/bin/chromium';
const FIREFOX = '/usr/bin/firefox-esr';

/** Both. */
export const BROWSERS: readonly FoundBrowser[] = [
  {
    name: 'chromium',
    ...missing(CHROMIUM, 'chromium'),
    // Root, as in a container, has no sandbox of its own to make.
    open: () => chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] }),
  },
  {
    name: 'firefox',
    ...missing(FIREFOX, 'firefox-esr'),
    open: () => firefox.launch({ channel: 'moz-firefox', executablePath: FIREFOX }),
  },
];

function missing(path: string, debian: string): { readonly missing?: string } {
  return existsSync(path) ? {} : { missing: `${path} is not there: apt install ${debian}` };
}
