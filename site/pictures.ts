/** `npm run site:pictures`: the pictures of the playground in docs/playground.md, taken of its examples in Chromium. */
import { statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';
import { installPackages } from './build.ts';

const root = new URL('..', import.meta.url).pathname;

/** A picture that is larger than this slows down everybody who clones. */
const MOST_BYTES = 160_000;

interface Picture {
  readonly name: string;
  readonly theme: 'light' | 'dark';
  readonly width: number;
  readonly height: number;
  /** What is asked of the example. */
  readonly tab: string;
  readonly cluster?: string;
}

const PICTURES: readonly Picture[] = [
  { name: 'playground-report', theme: 'light', width: 1280, height: 800, tab: 'Report' },
  {
    name: 'playground-doctor-dark',
    theme: 'dark',
    width: 1280,
    height: 680,
    tab: 'Doctor',
    cluster: 'clusters/shop-eu',
  },
  { name: 'playground-phone', theme: 'light', width: 390, height: 760, tab: 'Explain' },
];

installPackages();
// Its packages are there only now.
const { playgroundPage } = await import('./playground/bundle.ts');
const folder = await mkdtemp(join(tmpdir(), 'pullwright-pictures-'));
const file = join(folder, 'playground.html');
writeFileSync(file, await playgroundPage());
const browser = await chromium.launch({
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
for (const { name, theme, width, height, ...picture } of PICTURES) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
  const page = await context.newPage();
  await page.goto(`file://${file}`);
  await ask(page, picture);
  const path = `${root}docs/pictures/${name}.png`;
  await page.screenshot({ path });
  const { size } = statSync(path);
  if (size > MOST_BYTES) throw new Error(`${path} has ${size} bytes: expected at most ${MOST_BYTES}`);
  process.stdout.write(`${path}: ${size} bytes\n`);
}
await browser.close();
await rm(folder, { recursive: true });

async function ask(page: Page, { tab, cluster }: Pick<Picture, 'tab' | 'cluster'>): Promise<void> {
  await page.getByRole('button', { name: 'A fleet in trouble' }).click();
  await page.frameLocator('iframe').getByRole('heading', { level: 1 }).waitFor();
  if (tab === 'Report') return;
  await page.getByRole('tab', { name: tab, exact: true }).click();
  if (cluster !== undefined) await page.getByLabel('Cluster').selectOption(cluster);
  await page.locator('.out').waitFor();
}
