/** `pullwright completion`: a completion script for a shell, made from the tables of flags. */

import { type Command, type CommandIo, defineCommand, type ExitCode, NOTHING } from '../cli/command.ts';
import type { Completion, Flag, Flags, Given } from '../cli/flags.ts';
import { UsageError } from '../core/errors.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** A subcommand, as completion sees it. */
interface CompletionEntry {
  readonly name: string;
  readonly summary: string;
  readonly flags: Flags;
  /** Candidates where no flag is expected. */
  readonly offers: Completion;
}

const TABLE = {
  name: 'completion',
  about: [
    'Prints a script that completes commands, flags and their values; namespaces, contexts, pods, nodes and ServiceAccounts are read with kubectl.',
  ],
  args: [{ name: SHELLS.join('|'), help: 'the shell' }],
  flags: {},
  examples: ['pullwright completion bash > /etc/bash_completion.d/pullwright'],
  permissions: NOTHING,
} as const;

export const command: Command = defineCommand(TABLE, run);

async function run({ args }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const shell = SHELLS.find((name) => name === args[0]);
  if (shell === undefined || args.length !== 1)
    throw new UsageError(
      `Cannot print a completion script for "${args.join(' ')}": expected one of ${SHELLS.join(', ')}`,
    );
  // Not at the top: the table imports this file, and the other commands are needed only here.
  const { COMMANDS } = await import('./table.ts');
  const entries: CompletionEntry[] = [];
  for (const [name, entry] of Object.entries(COMMANDS)) {
    const { flags, args: [first] = [] } = await (await entry.load()).spec();
    entries.push({ name, summary: entry.summary, flags, offers: first?.completes ?? 'files' });
  }
  io.stdout.write(completionScript(shell, entries));
  return 0;
}

function completionScript(shell: Shell, entries: readonly CompletionEntry[]): string {
  if (shell === 'fish') return fish(entries);
  return shell === 'bash'
    ? bash(entries)
    : `#compdef pullwright\nautoload -U +X bashcompinit && bashcompinit\n${bash(entries)}`;
}

/** What prints the names that only a cluster or a kubeconfig knows, one a line. */
const ASKS = {
  namespaces: "kubectl get namespaces -o name 2>/dev/null | sed 's|^namespace/||'",
  contexts: 'kubectl config get-contexts -o name 2>/dev/null',
  // The namespace on the command line; none means that of the context.
  pods: "kubectl get pods $namespace -o name 2>/dev/null | sed 's|^pod/||'",
  nodes: "kubectl get nodes -o name 2>/dev/null | sed 's|^node/||'",
  accounts: "kubectl get serviceaccounts $namespace -o name 2>/dev/null | sed 's|^serviceaccount/||'",
} as const;

/** `--output`, `-o` */
function spellings([name, { short }]: readonly [string, Flag<unknown>]): readonly string[] {
  return [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
}

function allFlags({ flags }: CompletionEntry): readonly string[] {
  return Object.keys(flags).map((name) => `--${name}`);
}

/** Pattern of `case` for a flag of a command, and what answers for it; a switch takes no value. */
function valueCases(
  entries: readonly CompletionEntry[],
  answer: (flag: Flag<unknown>) => string,
): readonly string[] {
  return entries.flatMap(({ name, flags }) =>
    Object.entries(flags)
      .filter(([, flag]) => flag.value !== '')
      .map(
        (one) =>
          `    ${spellings(one)
            .map((word) => `'${name} ${word}'`)
            .join('|')}) ${answer(one[1])} ;;`,
      ),
  );
}

/** Commands whose first argument is the name of something in the cluster, and what lists it. */
function argumentCases(entries: readonly CompletionEntry[]): readonly { name: string; ask: string }[] {
  return entries.flatMap(({ name, offers }) => (isAsked(offers) ? [{ name, ask: ASKS[offers] }] : []));
}

function isAsked(completion: Completion): completion is keyof typeof ASKS {
  return Object.hasOwn(ASKS, completion);
}

/** Words of commands, flags and choices hold no character that a shell reads. */
function bash(entries: readonly CompletionEntry[]): string {
  const cases = entries.map((entry) => `    ${entry.name}) words="${allFlags(entry).join(' ')}" ;;`);
  return [
    '_pullwright() {',
    '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" words="" namespace="" i',
    '  for ((i = 2; i < COMP_CWORD; i++)); do',
    '    case "${COMP_WORDS[i]}" in -n|--namespace) namespace="--namespace=${COMP_WORDS[i+1]}" ;; esac',
    '  done',
    // Bash cuts `--flag=value` at the sign.
    '  if [ "$current" = = ]; then current="";',
    '  elif [ "$previous" = = ]; then previous="${COMP_WORDS[COMP_CWORD-2]}"; fi',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    COMPREPLY=($(compgen -W "${entries.map((entry) => entry.name).join(' ')}" -- "$current")); return`,
    '  fi',
    '  case "${COMP_WORDS[1]} $previous" in',
    ...valueCases(entries, bashValue),
    '  esac',
    '  if [[ "$current" != -* ]]; then',
    '    case "${COMP_WORDS[1]}" in',
    ...argumentCases(entries).map(
      ({ name, ask }) => `    ${name}) COMPREPLY=($(compgen -W "$(${ask})" -- "$current")); return ;;`,
    ),
    '    esac',
    '    COMPREPLY=($(compgen -f -- "$current")); return',
    '  fi',
    '  case "${COMP_WORDS[1]}" in',
    ...cases,
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    'complete -o filenames -F _pullwright pullwright kubectl-pullwright',
    '',
  ].join('\n');
}

function bashValue({ completes, choices = [] }: Flag<unknown>): string {
  const reply = (what: string): string => `COMPREPLY=($(compgen ${what} -- "$current")); return`;
  if (completes === 'files') return reply('-f');
  if (completes === 'folders') return reply('-d');
  if (completes === 'choices') return reply(`-W "${choices.join(' ')}"`);
  return completes === 'nothing' ? 'COMPREPLY=(); return' : reply(`-W "$(${ASKS[completes]})"`);
}

function fish(entries: readonly CompletionEntry[]): string {
  return entries
    .flatMap(({ name, summary, flags, offers }) => [
      `complete -c pullwright -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
      ...(isAsked(offers)
        ? [
            `complete -c pullwright -n '__fish_seen_subcommand_from ${name}' -f -a ${quoted(`(${ASKS[offers]})`)}`,
          ]
        : []),
      ...Object.entries(flags).map(
        ([flag, about]) =>
          `complete -c pullwright -n '__fish_seen_subcommand_from ${name}' -l ${flag}${fishFlag(about)}`,
      ),
    ])
    .join('\n')
    .concat('\n');
}

function fishFlag({ short, help, value, completes, choices = [] }: Flag<unknown>): string {
  const list = (what: string): string => ` -r -f -a ${quoted(what)}`;
  const values = isAsked(completes)
    ? list(`(${ASKS[completes]})`)
    : {
        files: ' -r -F',
        folders: list('(__fish_complete_directories)'),
        choices: list(choices.join(' ')),
        nothing: ' -r -f',
      }[completes];
  return `${short === undefined ? '' : ` -s ${short}`}${value === '' ? '' : values} -d ${quoted(help)}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
