/**
 * `pullwright completion`: prints a completion script for a shell. At each TAB, the script runs `pullwright completion words`,
 * which prints one candidate per line, followed by a tab and a description.
 */

// Starts only kubectl, on the machine of the user.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Command, type CommandIo, defineCommand, type ExitCode, NOTHING } from '../cli/command.ts';
import type { Completion, Given } from '../cli/flags.ts';
import { UsageError } from '../core/errors.ts';

const BASH = `_pullwright() {
  local current="\${COMP_WORDS[COMP_CWORD]}" program="\${COMP_WORDS[0]/#\\~/$HOME}" IFS=$'\\n'
  type -P "$program" >/dev/null || program=pullwright
  if [ "$current" = = ]; then current=""; fi
  COMPREPLY=($(compgen -W "$("$program" completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)" -- "$current"))
}
complete -o default -F _pullwright pullwright kubectl-pullwright
`;

const SCRIPTS: Readonly<Record<string, string>> = {
  bash: BASH,
  zsh: `#compdef pullwright\nautoload -U +X bashcompinit && bashcompinit\n${BASH}`,
  fish: "complete -c pullwright -a '(pullwright completion words -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'\n",
};

const TABLE = {
  name: 'completion',
  about: [
    'Prints a script that completes commands, flags and their values; namespaces, contexts, pods, nodes and ServiceAccounts are read with kubectl.',
  ],
  args: [{ name: Object.keys(SCRIPTS).join('|'), help: 'the shell' }],
  flags: {},
  examples: ['pullwright completion bash > /etc/bash_completion.d/pullwright'],
  permissions: NOTHING,
} as const;

export const command: Command = defineCommand(TABLE, run);

async function run({ args }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const [shell = '', ...words] = args;
  if (shell === 'words') {
    // Bash splits `--flag=value` at the equals sign, other shells do not.
    const [, flag, value = ''] = /^(--[^=]+)=(.*)$/.exec(words.at(-1) ?? '') ?? [];
    const found = await candidates(flag === undefined ? words : [...words.slice(0, -1), flag, value]);
    for (const word of found) io.stdout.write(`${flag === undefined ? '' : `${flag}=`}${word}\n`);
    return 0;
  }
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
  if (script === undefined || words.length > 0)
    throw new UsageError(
      `Cannot print a completion script for "${args.join(' ')}": expected one of ${Object.keys(SCRIPTS).join(', ')}`,
    );
  io.stdout.write(script);
  return 0;
}

/** Candidates for the last of `words`; empty where the shell completes file names. */
async function candidates(words: readonly string[]): Promise<readonly string[]> {
  // Imported here, because the table imports this file.
  const { COMMANDS } = await import('./table.ts');
  const [name = '', ...rest] = words;
  if (rest.length === 0) return Object.entries(COMMANDS).map(([one, { summary }]) => `${one}\t${summary}`);
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (entry === undefined) return [];
  const { flags, args: [argument] = [] } = await (await entry.load()).spec();
  const given = (rest.at(-1) === '=' ? [...rest, ''] : rest).filter((word) => word !== '=');
  const [current = '', previous = ''] = given.toReversed();
  const known = Object.entries(flags);
  const flag = known.find(([long, { short }]) => previous === `--${long}` || previous === `-${short}`)?.[1];
  if (flag !== undefined && flag.value !== '') return flag.choices ?? asked(flag.completes, given);
  if (!current.startsWith('-')) return asked(argument?.completes, given);
  return known.map(([long, { help }]) => `--${long}\t${help}`);
}

/** kubectl arguments that list names from a cluster or a kubeconfig. */
const LISTS: Readonly<Record<Completion, readonly string[]>> = {
  namespaces: ['get', 'namespaces'],
  contexts: ['config', 'get-contexts'],
  pods: ['get', 'pods'],
  nodes: ['get', 'nodes'],
  accounts: ['get', 'serviceaccounts'],
};

async function asked(what: Completion | undefined, words: readonly string[]): Promise<readonly string[]> {
  if (what === undefined) return [];
  // The namespace on the command line. Without one, kubectl uses that of the context.
  const at = words.findIndex((word) => word === '-n' || word === '--namespace');
  const namespace = at < 0 || what === 'contexts' ? [] : [`--namespace=${words[at + 1] ?? ''}`];
  const { stdout } = await promisify(execFile)('kubectl', [...LISTS[what], ...namespace, '-o', 'name']);
  // Bash expands the candidates, and a context may be named $(anything).
  return stdout
    .split('\n')
    .map((line) => line.slice(what === 'contexts' ? 0 : line.indexOf('/') + 1))
    .filter((word) => /^[\w.:@/+-]+$/.test(word));
}
