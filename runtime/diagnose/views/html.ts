/**
 * A report as one page that needs nothing else: no network, no file beside it. What is shown is drawn by the script from the data
 * at the end of the page, which no browser runs; names in it are text wherever they are put.
 */
import { createHash } from 'node:crypto';
import { counted, onOneLine, printable } from '../../core/text.ts';
import { headline, type Report, VERDICT_WORDS } from '../model/types.ts';
import { PAGE_SCRIPT, PAGE_STYLE } from './page.ts';

/**
 * The page.
 */
export function reportHtml(report: Report): string {
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(PAGE_SCRIPT)}'`,
    `style-src '${hashOf(PAGE_STYLE)}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="referrer" content="no-referrer">',
    '<title>Pull credentials</title>',
    `<style>${PAGE_STYLE}</style>`,
    '</head>',
    '<body>',
    '<a class="skip" href="#view">To the report</a>',
    '<header><div><a class="brand" href="#">Pull credentials</a><span id="made"></span>',
    '<input id="search" type="search" placeholder="Search (press /)" aria-label="Search clusters, images, registries, namespaces" autocomplete="off" spellcheck="false"></div></header>',
    '<main id="view" tabindex="-1">',
    noScript(report),
    '</main>',
    '<footer>Made by pullwright report. It holds no password and no token, and asks no server.</footer>',
    `<script type="application/json" id="data">${jsonInHtml(report)}</script>`,
    `<script>${PAGE_SCRIPT}</script>`,
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

/** Nothing in it can end the element, open a comment, be obeyed by a terminal, or be a line break of old JavaScript. */
function jsonInHtml(value: unknown): string {
  return printable(JSON.stringify(value)).replace(
    /[<>&]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** For viewers that run no script: what is wrong, in a list. */
function noScript(report: Report): string {
  const items = report.problems.map(
    ({ verdict, title, clusters, cases }) =>
      `<li>${escaped(`${VERDICT_WORDS[verdict]}: ${title} (${cases.length} in ${counted(clusters.length, 'cluster')})`)}</li>`,
  );
  return `<noscript><h1>${escaped(headline(report))}</h1><ul>${items.join('')}</ul><p>The rest of this page needs its script.</p></noscript>`;
}

function escaped(text: string): string {
  return onOneLine(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
