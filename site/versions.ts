/** A published site is a folder with a folder for each version; the pages at its top redirect to the newest. */
import { globSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Folders that are versions, newest first: a release before what led to it, as semantic versioning orders them. */
export function versionsIn(names: readonly string[]): readonly string[] {
  return names.filter((name) => /^\d+\.\d+\.\d+(-[\w.-]+)?$/.test(name)).toSorted((a, b) => order(b, a));
}

function order(a: string, b: string): number {
  const [coreA = '', ...preA] = a.split('-');
  const [coreB = '', ...preB] = b.split('-');
  const byCore = natural(coreA, coreB);
  if (byCore !== 0) return byCore;
  return preA.length === 0 || preB.length === 0
    ? preB.length - preA.length
    : natural(preA.join('-'), preB.join('-'));
}

function natural(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

/** Writes `versions.js`, which the switch of every version reads, and the page that leads to the newest. */
export function writeVersions(site: string, base: string): void {
  const versions = versionsIn(readdirSync(site)).map((version) => ({
    version,
    path: `${base}${version}/`,
    pages: globSync('**/*.html', { cwd: join(site, version) }).sort(),
  }));
  writeFileSync(join(site, 'versions.js'), `globalThis.pullwrightVersions = ${JSON.stringify(versions)};\n`);
  const newest = `./${versions[0]?.version ?? ''}/`;
  writeFileSync(
    join(site, 'index.html'),
    `<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<link rel="icon" href="data:,">\n<title>Pullwright</title>\n<meta http-equiv="refresh" content="0; url=${newest}">\n<a href="${newest}">Documentation</a>\n`,
  );
}
