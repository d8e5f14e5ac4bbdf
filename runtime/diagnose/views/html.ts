/**
 * A report as one page that needs nothing else: no network, no file beside it. What is shown is drawn by the script from the data
 * at the end of the page, which no browser runs; names in it are text wherever they are put.
 */
import { createHash } from 'node:crypto';
import { plain } from '../../cli/terminal.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { printable } from '../../core/text.ts';
import type { Report } from '../model/cluster.ts';
import type { Cause, FoundIn } from '../model/types.ts';
import { PAGE_SCRIPT, PAGE_STYLE } from './page.ts';
import { fixText, reportText } from './text.ts';

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
    // For viewers that run no script.
    `<noscript><pre>${escaped(reportText(report, plain))}</pre></noscript>`,
    '</main>',
    '<footer>Made by pullwright report. It holds no password and no token, and asks no server.<p id="address" class="address"></p></footer>',
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

/**
 * With fixes as text, since the script of the page writes no YAML. Nothing in it can end the element, open a comment, be obeyed by a
 * terminal, or be a line break of old JavaScript.
 */
function jsonInHtml(report: Report): string {
  const json = JSON.stringify(report, (name, value: unknown) =>
    name === 'fix' && Array.isArray(value) ? fixText(value as readonly KubeObject[]) : value,
  );
  return printable(json).replace(
    /[<>&]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function escaped(text: string): string {
  return printable(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
