/**
 * A report as one page that needs nothing else: no network, no file beside it. What is shown is drawn by the script from the data
 * at the end of the page, which no browser runs; names in it are text wherever they are put.
 */
import { createHash } from 'node:crypto';
import { counted, onOneLine, printable } from '../../core/text.ts';
import type { Report } from '../model/cluster.ts';
import { type Cause, causeText, type FoundIn, headline, VERDICT_WORDS } from '../model/types.ts';
import { PAGE_SCRIPT, PAGE_STYLE } from './page.ts';
import { fixText } from './text.ts';

/** A report as the page has it. */
export type PageReport = Omit<Report, 'problems'> & { readonly problems: readonly PageCause[] };

/** Findings of one cause as the page has them. */
export type PageCause = Omit<Cause, 'cases'> & { readonly cases: readonly PageCase[] };

/** A case as the page has it: with what fixes it as text. */
export type PageCase = Omit<FoundIn, 'fix'> & { readonly fix?: string };

/** The page. */
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
    `<script type="application/json" id="data">${jsonInHtml(pageReport(report))}</script>`,
    `<script>${PAGE_SCRIPT}</script>`,
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

/** The script of the page writes no YAML. */
function pageReport({ problems, ...report }: Report): PageReport {
  return {
    ...report,
    problems: problems.map(({ cases, ...cause }) => ({
      ...cause,
      cases: cases.map(({ fix, ...one }) => (fix === undefined ? one : { ...one, fix: fixText(fix) })),
    })),
  };
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
    ({ verdict, clusters, cases, ...cause }) =>
      `<li>${escaped(`${VERDICT_WORDS[verdict]}: ${causeText(cause)} (${cases.length} in ${counted(clusters.length, 'cluster')})`)}</li>`,
  );
  return `<noscript><h1>${escaped(headline(report))}</h1><ul>${items.join('')}</ul><p>The rest of this page needs its script.</p></noscript>`;
}

function escaped(text: string): string {
  return onOneLine(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
