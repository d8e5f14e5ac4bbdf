/**
 * The page that a browser gets before it has shown a token. It holds no data, keeps the token in the memory of its own script for
 * one request, and becomes the report that comes back.
 */
import { createHash } from 'node:crypto';
import { PAGE_SCRIPT, PAGE_STYLE, SIGN_IN_SCRIPT } from '../report/page.ts';
import { REPORT_AUDIENCE } from './reviews.ts';

/** What the server says with this page. The script and style of the report are among them, since the page becomes the report. */
export const SIGN_IN_POLICY: string = [
  "default-src 'none'",
  `script-src '${hashOf(SIGN_IN_SCRIPT)}' '${hashOf(PAGE_SCRIPT)}'`,
  `style-src '${hashOf(PAGE_STYLE)}'`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** What the server says with a report: the policy in the page itself, and that no other page may hold it. */
export const REPORT_POLICY: string = [
  "default-src 'none'",
  `script-src '${hashOf(PAGE_SCRIPT)}'`,
  `style-src '${hashOf(PAGE_STYLE)}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

/**
 * The page, which is the same for everybody.
 *
 * @example
 * ```ts
 * import { SIGN_IN_PAGE } from './sign-in.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.match(SIGN_IN_PAGE, /kubectl create token/);
 * ```
 */
export const SIGN_IN_PAGE: string = [
  '<!doctype html>',
  '<html lang="en">',
  '<head>',
  '<meta charset="utf-8">',
  '<meta name="viewport" content="width=device-width, initial-scale=1">',
  '<title>Pull credentials</title>',
  `<style>${PAGE_STYLE}</style>`,
  '</head>',
  '<body>',
  '<header><div><span class="brand">Pull credentials</span></div></header>',
  '<main id="view">',
  '<h1>Who are you?</h1>',
  `<p>The cluster judges a token that is made for this page alone (audience <code>${REPORT_AUDIENCE}</code>):</p>`,
  `<pre><code>kubectl create token NAME -n NAMESPACE --audience ${REPORT_AUDIENCE}</code></pre>`,
  '<form id="sign-in" class="sign-in">',
  '<p><label for="namespace">Namespace (empty: the whole cluster)</label>',
  '<input id="namespace" autocomplete="off" spellcheck="false" autocapitalize="off" pattern="[a-z0-9]([a-z0-9\\-]*[a-z0-9])?" maxlength="63"></p>',
  '<p><label for="token">Token</label>',
  '<input id="token" type="password" autocomplete="off" required></p>',
  '<p><button type="submit" class="more">Show the report</button></p>',
  '<p id="said" class="fault" role="alert"></p>',
  '</form>',
  '<p class="none">The token is sent to this server once and kept nowhere: to look again, sign in again.</p>',
  '<noscript><p>This page needs its script. Without one: curl with the header <code>Authorization: Bearer</code>.</p></noscript>',
  '</main>',
  `<script>${SIGN_IN_SCRIPT}</script>`,
  '</body>',
  '</html>',
  '',
].join('\n');
