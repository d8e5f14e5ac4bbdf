/** `pullwright completion`: a completion script for a shell, made from the help texts. */
import { UsageError } from '../rules/errors.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { NOTHING } from './permissions.ts';

const SHELLS = ['bash', 'zsh', 'fish', 'kubectl'] as const;
type Shell = (typeof SHELLS)[number];

/** A subcommand, as completion sees it. */
export interface CompletionEntry {
  readonly name: string;
  readonly summary: string;
  /** With dashes: `--from`. */
  readonly flags: readonly string[];
}

const HELP = `
Usage: pullwright completion bash|zsh|fish|kubectl

Prints a script that completes commands and flags. That for kubectl is a program of its own, which kubectl 1.26 and newer ask
about "kubectl pullwright": save it as kubectl_complete-pullwright in a folder of PATH, and make it executable.

Example: pullwright completion bash > /etc/bash_completion.d/pullwright
`;

export const command: Command = {
  name: 'completion',
  summary: 'Print a completion script for bash, zsh, fish or kubectl',
  help: HELP,
  permissions: NOTHING,
  run,
};

async function run(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const shell = SHELLS.find((name) => name === args[0]);
  if (shell === undefined || args.length !== 1)
    throw new UsageError(
      `Cannot print a completion script for "${args.join(' ')}": wanted one of ${SHELLS.join(', ')}`,
    );
  // Not at the top: the table imports this file, and help texts are wanted only here.
  const { COMMANDS } = await import('./table.ts');
  const entries: CompletionEntry[] = [];
  for (const [name, entry] of Object.entries(COMMANDS)) {
    const { help, spec } = await entry.load();
    const flags = spec === undefined ? flagsOf(help) : Object.keys(spec.flags).map((flag) => `--${flag}`);
    entries.push({ name, summary: entry.summary, flags });
  }
  io.stdout.write(completionScript(shell, entries));
  return 0;
}

/**
 * The flags that a help text explains, each once, in order.
 *
 * @example
 * ```ts
 * import { flagsOf } from './completion.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(flagsOf('  --from DIR  a folder\n  --to DIR   where; goes with --from'), ['--from', '--to']);
 * ```
 */
export function flagsOf(help: string): readonly string[] {
  return [...new Set(help.match(/--[a-z][a-z0-9-]*/g) ?? [])];
}

/** The script for `shell`. */
export function completionScript(shell: Shell, entries: readonly CompletionEntry[]): string {
  if (shell === 'fish') return fish(entries);
  if (shell === 'kubectl') return kubectl(entries);
  return shell === 'bash'
    ? bash(entries)
    : `#compdef pullwright\nautoload -U +X bashcompinit && bashcompinit\n${bash(entries)}`;
}

/** Words of commands and flags hold no character that a shell reads: they are `[a-z-]`. */
function bash(entries: readonly CompletionEntry[]): string {
  const cases = entries.map(({ name, flags }) => `    ${name}) words="${flags.join(' ')}" ;;`);
  return [
    '_pullwright() {',
    '  local current="${COMP_WORDS[COMP_CWORD]}" words=""',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    words="${entries.map((entry) => entry.name).join(' ')}"`,
    '  else case "${COMP_WORDS[1]}" in',
    ...cases,
    '  esac; fi',
    '  if [[ "$COMP_CWORD" -gt 1 && "$current" != -* ]]; then COMPREPLY=($(compgen -f -- "$current"));',
    '  else COMPREPLY=($(compgen -W "$words" -- "$current")); fi',
    '}',
    'complete -o filenames -F _pullwright pullwright kubectl-pullwright',
    '',
  ].join('\n');
}

/**
 * Answers as cobra's `__complete` does: candidates, then `:4` for no files, `:0` for files too.
 *
 * Source of the rule: kubectl's SetupPluginCompletion, which calls it with the words behind `kubectl pullwright`.
 */
function kubectl(entries: readonly CompletionEntry[]): string {
  const lines = (words: readonly string[]): string => words.map((word) => ` '${word}'`).join('');
  return [
    '#!/bin/sh',
    "[ $# -gt 1 ] || { printf '%s\\n'" + lines(entries.map(({ name }) => name)) + '; echo :4; exit; }',
    'for last; do :; done',
    'case $last in -*) ;; *) echo :0; exit ;; esac',
    'case $1 in',
    ...entries.map(({ name, flags }) => `${name}) printf '%s\\n'${lines(flags)} ;;`),
    'esac',
    'echo :4',
    '',
  ].join('\n');
}

function fish(entries: readonly CompletionEntry[]): string {
  const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  return entries
    .flatMap(({ name, summary, flags }) => [
      `complete -c pullwright -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
      ...flags.map(
        (flag) => `complete -c pullwright -n '__fish_seen_subcommand_from ${name}' -l ${flag.slice(2)}`,
      ),
    ])
    .join('\n')
    .concat('\n');
}
