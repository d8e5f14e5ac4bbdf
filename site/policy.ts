/** Gives every page of the site a policy under which nothing is loaded but files beside it, and nothing is sent anywhere. */
import { createHash } from 'node:crypto';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A digest as policies write it. */
export function sourceHash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** Writes the policy into each page below `folder` that has none of its own. */
export function addPolicies(folder: string): void {
  for (const file of globSync('**/*.html', { cwd: folder }).map((name) => join(folder, name))) {
    const page = readFileSync(file, 'utf8');
    if (page.includes('http-equiv="Content-Security-Policy"')) continue;
    const inline = [...page.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([\s\S]*?)<\/script>/g)];
    const policy = [
      "default-src 'none'",
      ["script-src 'self'", ...new Set(inline.map(([, text = '']) => sourceHash(text)))].join(' '),
      // Highlighted code has its colours in attributes.
      "style-src 'self' 'unsafe-inline'",
      "img-src 'self' data:",
      "font-src 'self'",
      "connect-src 'none'",
      "base-uri 'none'",
      "form-action 'none'",
    ].join('; ');
    writeFileSync(
      file,
      page.replace('<head>', `<head>\n    <meta http-equiv="Content-Security-Policy" content="${policy}">`),
    );
  }
}
