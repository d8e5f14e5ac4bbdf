/** The reference of the command line, as Markdown and as a man page, from the tables of the commands. */
import type { Command, Permissions } from '../../runtime/cli/command.ts';
import { type CommandSpec, helpText } from '../../runtime/cli/help.ts';
import { COMMANDS } from '../../runtime/commands/table.ts';
import { VERSION } from '../../runtime/core/version.ts';
import { OUTCOMES } from '../../runtime/pull-secret-adapter/outcome.ts';
import { codeSpan, table } from './markdown.ts';

/** Every command, sorted by name. */
export function commandPages() {
  return Promise.all(
    Object.values(COMMANDS).map(async (entry) => {
      const command: Command = await entry.load();
      return { spec: await command.spec(), permissions: command.permissions };
    }),
  );
}

type CommandPages = readonly { readonly spec: CommandSpec; readonly permissions: Permissions }[];

/**
 * Returns Markdown with the help and the permissions of each command.
 *
 * @example
 * ```ts
 * import { markdownReference } from './cli.ts';
 * import assert from 'node:assert/strict';
 *
 * const spec = { name: 'demo', about: ['Shows it.'], flags: {}, examples: ['pullwright demo'] };
 * const permissions = { reads: [], writes: [], hosts: [], api: [] };
 * assert.match(markdownReference([{ spec, permissions }]), /^## demo\n\n```text\nShows it\.\n\nUsage: pullwright demo$/m);
 * ```
 */
export function markdownReference(pages: CommandPages): string {
  return [
    '# Command line',
    '',
    'Every command with its flags, exit codes and permissions: all that it may read, write and contact. Roles, containers and the `--permission` flags of Node',
    'are rendered from the same table or compared with it; a name in angle brackets is the value of that flag. Each section starts with the output of',
    '`pullwright COMMAND --help`. Durations are written as in Kubernetes: `30s`, `5m`.',
    '',
    'With `--output json` a command prints one document to stdout, or nothing if the run fails; with `--watch`, one document after the other.',
    'Within a major version no field is removed, renamed or changes its type; fields, codes, reasons and states may be added. Texts for people (`message`,',
    '`summary`, `fix`, `advice`, `why`) may change in any version.',
    '',
    ...pages.map(({ spec }) => `- [\`${spec.name}\`](#${spec.name}): ${COMMANDS[spec.name]?.summary ?? ''}`),
    '',
    ...pages.flatMap(({ spec, permissions }) => [
      `## ${spec.name}`,
      '',
      '```text',
      helpText(spec),
      '```',
      '',
      ...touched(permissions),
    ]),
    '## Exit codes of job',
    '',
    'A code of class `terminal` or `denied` fails the Job of the pull secret adapter at once; any other is retried.',
    '',
    ...table(
      ['outcome', 'code', 'class'],
      Object.entries(OUTCOMES).map(([reason, kind]) => [codeSpan(reason), String(kind.exitCode), kind.class]),
    ),
  ].join('\n');
}

function touched({ reads, writes, hosts, api }: Permissions): readonly string[] {
  const line = (what: string, items: readonly string[], show: (item: string) => string): readonly string[] =>
    items.length === 0 ? [] : [`- ${what}: ${items.map(show).join(', ')}`];
  const lines = [
    ...line('reads', reads, codeSpan),
    ...line('writes', writes, codeSpan),
    ...line('hosts', hosts, prose),
    ...line('API verbs', api, prose),
  ];
  return lines.length === 0 ? [] : ['Permissions:', '', ...lines, ''];
}

/** Escapes `<`, which would start an HTML tag. */
function prose(text: string): string {
  return text.replaceAll('<', '&lt;');
}

/** Returns the page `pullwright.1`, in the macros of man(7). */
export function manPage(pages: CommandPages): string {
  return [
    `.TH PULLWRIGHT 1 "" "pullwright ${VERSION}" "User Commands"`,
    '.SH NAME',
    'pullwright \\- pull credentials as code for Kubernetes and OpenShift fleets',
    '.SH SYNOPSIS',
    '.B pullwright',
    '.I command',
    '[flags]',
    '.SH COMMANDS',
    ...pages.flatMap(({ spec }) => [
      `.SS ${roff(spec.name)}`,
      '.EX',
      ...helpText(spec).split('\n').map(roff),
      '.EE',
    ]),
    '',
  ].join('\n');
}

/** Escapes text that troff prints verbatim: a line must not begin with a period or a quote. */
function roff(text: string): string {
  const escaped = text.replaceAll('\\', '\\e').replaceAll('-', '\\-');
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}
