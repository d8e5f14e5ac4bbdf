/** Bundles script and style of the HTML report into one source file, so that running from source needs no build. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { ROOT } from './run-tool.ts';

/** The generated source file. */
export const PAGE_FILE = 'runtime/diagnose/views/page.ts';

/** The content of the generated file. */
export async function pageSource(): Promise<string> {
  const [script, style] = await Promise.all([bundle('main.ts'), bundle('style.css')]);
  return [
    '/** The script and style of the page, bundled from build/report-page. Made by `npm run report:page`. */',
    '',
    `export const PAGE_SCRIPT: string = ${JSON.stringify(script)};`,
    '',
    `export const PAGE_STYLE: string = ${JSON.stringify(style)};`,
    '',
  ].join('\n');
}

async function bundle(entry: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(ROOT, 'build/report-page', entry)],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    target: ['chrome109', 'firefox115', 'safari16'],
    charset: 'ascii',
    legalComments: 'none',
    tsconfig: join(ROOT, 'build/report-page/tsconfig.json'),
  });
  return (outputFiles[0]?.text ?? '').trimEnd();
}

if (import.meta.main) writeFileSync(join(ROOT, PAGE_FILE), await pageSource());
