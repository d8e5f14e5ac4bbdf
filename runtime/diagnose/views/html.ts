/**
 * Renders a report as a self-contained page, without network access or other files. The script renders the view from the JSON at
 * the end of the page, and inserts names as text only.
 */
import { createHash } from 'node:crypto';
import { plain } from '../../cli/terminal.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { printable } from '../../core/text.ts';
import type { Report } from '../model/cluster.ts';
import type { Cause, FoundIn } from '../model/types.ts';
import { PAGE_SCRIPT, PAGE_STYLE } from './page.ts';
import { fixText, reportText } from './text.ts';

/** Report data of the page. */
export type PageReport = Omit<Report, 'problems'> & { readonly problems: readonly PageCause[] };

/** A cause in the data of the page. */
export type PageCause = Omit<Cause, 'cases'> & { readonly cases: readonly PageCase[] };

/** A case in the data of the page, with the fix as YAML. */
export type PageCase = Omit<FoundIn, 'fix'> & { readonly fix?: string };

/** Renders the page. */
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
    // For viewers without scripts.
    `<noscript><pre>${escaped(reportText(report, plain))}</pre></noscript>`,
    '</main>',
    '<footer>Created by pullwright report. It contains no password and no token, and contacts no server.<p id="address" class="address"></p></footer>',
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
 * Serializes the report, with fixes as YAML text. Escapes characters that could close the element, open a comment, control a
 * terminal, or break a line in old JavaScript.
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
