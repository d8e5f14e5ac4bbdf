/** The reference of the command line, as Markdown and as a man page, out of the tables of the commands. */
import type { Command, Permissions } from '../../runtime/cli/command.ts';
import type { Flag, Flags } from '../../runtime/cli/flags.ts';
import { type CommandSpec, exitCodes, flagHelp, flagUsage, usage } from '../../runtime/cli/help.ts';
import { COMMANDS } from '../../runtime/commands/table.ts';
import { VERSION } from '../../runtime/core/version.ts';
import { OUTCOMES } from '../../runtime/pull-secret-adapter/outcome.ts';
import { codeSpan, table } from './markdown.ts';

/** What is written about a command. */
export interface CommandPage {
  readonly spec: CommandSpec;
  readonly permissions: Permissions;
}

/** Every command of the program, by name. */
export async function commandPages(): Promise<readonly CommandPage[]> {
  const commands = await Promise.all(Object.values(COMMANDS).map((entry): Promise<Command> => entry.load()));
  return Promise.all(
    commands.map(async (command) => ({ spec: await command.spec(), permissions: command.permissions })),
  );
}

/**
 * Markdown: what each command does, its arguments and flags, and what it touches.
 *
 * @example
 * ```ts
 * import { markdownReference } from './cli.ts';
 * import assert from 'node:assert/strict';
 *
 * const spec = { name: 'demo', about: ['Shows it.'], flags: {}, examples: ['pullwright demo'] };
 * const permissions = { reads: [], writes: [], hosts: [], api: [] };
 * assert.match(markdownReference([{ spec, permissions }]), /^## demo\n\nShows it\.\n\n```text\npullwright demo\n```$/m);
 * ```
 */
export function markdownReference(pages: readonly CommandPage[]): string {
  return [
    '# Command line',
    '',
    'Every command, its flags, its exit codes, and its permissions: what it may read, write and contact, and nothing else. Roles, containers and the `--permission`',
    'line of Node are rendered from the same table or compared with it; a name in angle brackets is the value of that flag. `pullwright COMMAND --help` prints the',
    'same. Durations are as Kubernetes writes them: `30s`, `5m`.',
    '',
    'With `--output json` a command prints one document to stdout, or nothing where the run could not be made; with `--watch`, one after the other.',
    'Within a major version no field is removed, renamed or changes its type; fields, codes, reasons and states may be added. Texts for people (`message`,',
    '`summary`, `fix`, `advice`, `why`) may change in any version.',
    '',
    ...pages.map(({ spec }) => `- [\`${spec.name}\`](#${spec.name}): ${COMMANDS[spec.name]?.summary ?? ''}`),
    '',
    ...pages.flatMap(markdownPage),
    '## Exit codes of job',
    '',
    'A code of class `terminal` or `denied` fails the Job of the pull secret adapter at once; with any other it is tried again.',
    '',
    ...table(
      ['outcome', 'code', 'class'],
      Object.entries(OUTCOMES).map(([reason, kind]) => [codeSpan(reason), String(kind.exitCode), kind.class]),
    ),
  ].join('\n');
}

function markdownPage({ spec, permissions }: CommandPage): readonly string[] {
  return [
    `## ${spec.name}`,
    '',
    ...spec.about.flatMap((text) => [prose(text), '']),
    '```text',
    usage(spec),
    '```',
    '',
    ...list(spec.args ?? []),
    ...flagTable(spec.flags),
    ...((spec.environment ?? []).length === 0 ? [] : ['Environment:', '']),
    ...list(spec.environment ?? []),
    ...(spec.notes ?? []).flatMap((text) => [prose(text), '']),
    `Exit codes: ${prose(exitCodes(spec))}.`,
    '',
    ...touched(permissions),
    'Example:',
    '',
    '```sh',
    ...spec.examples,
    '```',
    '',
  ];
}

function list(entries: readonly { readonly name: string; readonly help: string }[]): readonly string[] {
  if (entries.length === 0) return [];
  return [...entries.map(({ name, help }) => `- \`${name}\`: ${prose(help)}`), ''];
}

function flagTable(flags: Flags): readonly string[] {
  const rows = Object.entries(flags).map(([name, flag]) => {
    const short = flag.short === undefined ? '' : `\`-${flag.short}\`, `;
    const more = flag.many ? '; may be given more than once' : '';
    const help = prose(flag.help + more).replaceAll('|', '\\|');
    return [short + codeSpan(flagUsage(name, flag)), fallback(flag), help];
  });
  return table(['flag', 'default', ''], rows);
}

function fallback({ default: text }: Flag<unknown>): string {
  return text === undefined || text === '' ? '' : codeSpan(text);
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

/** What looks like a tag is none. */
function prose(text: string): string {
  return text.replaceAll('<', '&lt;');
}

/** The page `pullwright.1`, in the macros of man(7). */
export function manPage(pages: readonly CommandPage[]): string {
  return [
    `.TH PULLWRIGHT 1 "" "pullwright ${VERSION}" "User Commands"`,
    '.SH NAME',
    'pullwright \\- pull credentials as code for Kubernetes and OpenShift fleets',
    '.SH SYNOPSIS',
    '.B pullwright',
    '.I command',
    '[flags]',
    '.SH COMMANDS',
    ...pages.flatMap(manEntry),
    '',
  ].join('\n');
}

function manEntry({ spec }: CommandPage): readonly string[] {
  return [
    `.SS ${roff(spec.name)}`,
    ...spec.about.flatMap((text) => [roff(text), '.PP']),
    `.B ${roff(usage(spec))}`,
    ...(spec.args ?? []).flatMap(({ name, help }) => item(name, help)),
    ...Object.entries(spec.flags).flatMap(([name, flag]) =>
      item(`${flag.short === undefined ? '' : `-${flag.short}, `}${flagUsage(name, flag)}`, flagHelp(flag)),
    ),
    ...(spec.environment ?? []).flatMap(({ name, help }) => item(name, help)),
    ...(spec.notes ?? []).flatMap((text) => ['.PP', roff(text)]),
    '.PP',
    `Exit codes: ${roff(exitCodes(spec))}`,
    ...spec.examples.flatMap((line) => ['.PP', 'Example:', '.EX', roff(line), '.EE']),
  ];
}

function item(name: string, help: string): readonly string[] {
  return ['.TP', `.B ${roff(name)}`, roff(help)];
}

/** Text that troff prints verbatim: a line must not begin with a period or a quote. */
function roff(text: string): string {
  const escaped = text.replaceAll('\\', '\\e').replaceAll('-', '\\-');
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}
