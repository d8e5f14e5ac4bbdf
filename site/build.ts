/**
 * `npm run site [-- --to DIR] [--base PATH] [--serve]`: builds the documentation of this version into `DIR/<version>`. Folders of other
 * versions in DIR stay, and the switch of every page leads to them.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { describeError } from '../runtime/core/errors.ts';
import { VERSION } from '../runtime/core/version.ts';
import { deadLinks } from './links.ts';
import { addPolicies } from './policy.ts';
import { serve } from './serve.ts';
import { stage } from './stage.ts';
import { writeVersions } from './versions.ts';

const HERE = import.meta.dirname;
const ROOT = resolve(HERE, '..');

export interface SiteOptions {
  /** The published folder. */
  readonly to: string;
  /** The path under which it is served, with a slash at both ends. */
  readonly base: string;
  /** Output of the generator. */
  readonly stdio?: 'inherit' | 'pipe';
}

/** Builds this version. @throws Error with what the generator said, such as a link that leads nowhere */
export async function buildSite({ to, base, stdio = 'pipe' }: SiteOptions): Promise<void> {
  installPackages();
  const pages = join(HERE, '.vitepress/pages');
  stage(ROOT, pages);
  // Its packages are there only now.
  const { playgroundPage } = await import('./playground/bundle.ts');
  writeFileSync(join(pages, 'public/play.html'), await playgroundPage());
  const out = join(to, VERSION);
  rmSync(out, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const built = join(HERE, '.vitepress/dist');
  run(
    [
      process.execPath,
      join(HERE, 'node_modules/vitepress/bin/vitepress.js'),
      'build',
      HERE,
      '--outDir',
      built,
    ],
    stdio,
    {
      PULLWRIGHT_SITE_PAGES: pages,
      PULLWRIGHT_SITE_BASE: base,
    },
  );
  const dead = deadLinks(built, `${base}${VERSION}/`);
  if (dead.length > 0) throw new Error(`Cannot build the site: links lead nowhere\n${dead.join('\n')}`);
  addPolicies(built);
  cpSync(built, out, { recursive: true });
  writeVersions(to, base);
}

/** The site's own packages, where they are not there as its lock file says. */
export function installPackages(): void {
  const installed = join(HERE, 'node_modules/.package-lock.json');
  if (existsSync(installed) && sameVersions(installed)) return;
  run(['npm', 'ci', '--no-progress'], 'pipe', {});
}

function sameVersions(installed: string): boolean {
  const there = packagesOf(installed);
  // Packages for other platforms are not installed.
  return Object.entries(packagesOf(join(HERE, 'package-lock.json'))).every(
    ([path, { version, optional }]) => there[path]?.version === version || optional === true || path === '',
  );
}

interface Locked {
  readonly version: string;
  readonly optional?: boolean;
}

function packagesOf(lock: string): Readonly<Record<string, Locked>> {
  return (JSON.parse(readFileSync(lock, 'utf8')) as { readonly packages: Readonly<Record<string, Locked>> })
    .packages;
}

function run(
  [program = '', ...args]: readonly string[],
  stdio: 'inherit' | 'pipe',
  env: NodeJS.ProcessEnv,
): void {
  const ran = spawnSync(program, args, {
    stdio: ['ignore', stdio, stdio],
    cwd: HERE,
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  if (ran.error !== undefined) throw ran.error;
  if (ran.status !== 0)
    throw new Error(`Cannot build the site: ${program} failed\n${ran.stdout ?? ''}${ran.stderr ?? ''}`);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      to: { type: 'string', default: join(ROOT, 'dist/site') },
      base: { type: 'string', default: '/' },
      serve: { type: 'boolean', default: false },
    },
  });
  const to = resolve(values.to);
  await buildSite({ to, base: values.base, stdio: 'inherit' });
  if (!values.serve) {
    process.stdout.write(`${to}: give it to a web server, or look at it with npm run site -- --serve\n`);
    return;
  }
  const { url } = await serve(to, 4173);
  process.stdout.write(`Open ${url}${VERSION}/ in a browser. Ctrl-C ends it.\n`);
}

if (import.meta.main) {
  try {
    await main();
  } catch (error) {
    process.stderr.write(`${describeError(error)}\n`);
    process.exitCode = 1;
  }
}
