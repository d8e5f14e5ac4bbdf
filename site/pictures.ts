/** `npm run site:pictures`: the pictures of the documents and the README, taken of the troubled example in Chromium. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';
import { installPackages } from './build.ts';

const root = new URL('..', import.meta.url).pathname;

/** A larger picture slows down every clone. */
const MOST_BYTES = 160_000;

interface Picture {
  readonly name: string;
  readonly theme?: 'dark';
  readonly width: number;
  readonly height: number;
  /** The tab of the playground; without it, the page of `pullwright report`. */
  readonly tab?: string;
  readonly cluster?: string;
}

const PICTURES: readonly Picture[] = [
  { name: 'report-light', width: 1280, height: 860 },
  { name: 'playground-report', width: 1280, height: 800, tab: 'Report' },
  {
    name: 'playground-doctor-dark',
    theme: 'dark',
    width: 1280,
    height: 680,
    tab: 'Doctor',
    cluster: 'clusters/shop-eu',
  },
  { name: 'playground-phone', width: 390, height: 760, tab: 'Explain' },
];

installPackages();
// Its packages are there only now.
const { playgroundPage } = await import('./playground/bundle.ts');
const folder = mkdtempSync(join(tmpdir(), 'pullwright-pictures-'));
const playground = join(folder, 'playground.html');
writeFileSync(playground, await playgroundPage());
const report = join(folder, 'report.html');
spawnSync(process.execPath, ['main.ts', 'report', '--from', 'examples/troubled', '--html', report], {
  cwd: root,
});
const browser = await chromium.launch({
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
for (const { name, theme = 'light', width, height, tab, cluster } of PICTURES) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
  const page = await context.newPage();
  await page.goto(`file://${tab === undefined ? report : playground}`);
  if (tab !== undefined) await ask(page, tab, cluster);
  const path = `${root}docs/pictures/${name}.png`;
  await page.screenshot({ path });
  const { size } = statSync(path);
  if (size > MOST_BYTES) throw new Error(`${path} has ${size} bytes: expected at most ${MOST_BYTES}`);
  process.stdout.write(`${path}: ${size} bytes\n`);
}
await browser.close();
rmSync(folder, { recursive: true });

async function ask(page: Page, tab: string, cluster: string | undefined): Promise<void> {
  await page.getByRole('button', { name: 'A fleet in trouble' }).click();
  await page.frameLocator('iframe').getByRole('heading', { level: 1 }).waitFor();
  if (tab === 'Report') return;
  await page.getByRole('tab', { name: tab, exact: true }).click();
  if (cluster !== undefined) await page.getByLabel('Cluster').selectOption(cluster);
  await page.locator('.out').waitFor();
}
