/**
 * Completion in PowerShell. Its script is the same for every version of the program, which it asks what may follow the words before
 * the cursor: PowerShell hands words over as they are, and there is no sed on Windows.
 */
import type { Completion, Flag, Flags } from './flags/flag.ts';

/** A subcommand, as completion sees it. */
export interface CompletionEntry {
  readonly name: string;
  readonly summary: string;
  readonly flags: Flags;
  /** What is offered where no flag stands. */
  readonly offers: Completion;
}

/** What lists the names that only a cluster or a kubeconfig knows: arguments of kubectl. */
const KUBECTL: Readonly<Partial<Record<Completion, string>>> = {
  namespaces: 'get namespaces -o name',
  contexts: 'config get-contexts -o name',
  pods: 'get pods$namespace -o name',
  nodes: 'get nodes -o name',
  accounts: 'get serviceaccounts$namespace -o name',
};

/**
 * What may follow `words`, a line each; then `:` alone, or `:kubectl` with the arguments by which kubectl lists more.
 *
 * @param words of the command line before the one that is completed, the program's name first
 * @example
 * ```ts
 * import { followersOf } from './completion-powershell.ts';
 * import { text } from './flags/flag.ts';
 * import assert from 'node:assert/strict';
 *
 * const flags = { namespace: text({ help: 'of the pod', short: 'n', completes: 'namespaces' }) };
 * const doctor = { name: 'doctor', summary: 'Find', flags, offers: 'pods' } as const;
 * assert.equal(followersOf([doctor], ['pullwright']), 'doctor\n:\n');
 * assert.equal(followersOf([doctor], ['pullwright', 'doctor', '-n']), ':kubectl get namespaces -o name\n');
 * ```
 */
export function followersOf(entries: readonly CompletionEntry[], words: readonly string[]): string {
  const [name, ...rest] = words.slice(1);
  if (name === undefined) return answer(entries.map((entry) => entry.name));
  const entry = entries.find((one) => one.name === name);
  if (entry === undefined) return answer([]);
  const flags = Object.entries(entry.flags);
  const last = rest.at(-1);
  const before = flags.find(([flag, { short }]) => last === `--${flag}` || last === `-${short}`)?.[1];
  if (before !== undefined && before.value !== '') return offered(before, rest);
  const own = flags.map(([flag]) => `--${flag}`);
  return answer(own, kubectlOf(entry.offers, rest));
}

function offered({ completes, choices = [] }: Flag<unknown>, words: readonly string[]): string {
  return answer(completes === 'choices' ? choices : [], kubectlOf(completes, words));
}

/** With the namespace that stands on the line already; none means that of the context. */
function kubectlOf(completes: Completion, words: readonly string[]): string | undefined {
  const at = words.findLastIndex((word) => word === '-n' || word === '--namespace');
  const namespace = at < 0 ? undefined : words[at + 1];
  // The script cuts at spaces, which no name of a namespace has.
  const isName = namespace !== undefined && /^[a-z0-9-]+$/.test(namespace);
  return KUBECTL[completes]?.replace('$namespace', isName ? ` --namespace=${namespace}` : '');
}

function answer(words: readonly string[], kubectl?: string): string {
  return [...words, kubectl === undefined ? ':' : `:kubectl ${kubectl}`].map((line) => `${line}\n`).join('');
}

/** The script. An empty answer leaves PowerShell to its own completion of files. */
export const POWERSHELL = `# Completion of pullwright: pullwright completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName 'pullwright', 'kubectl-pullwright' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $elements = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition })
    $words = @($elements | ForEach-Object { $_.Extent.Text })
    if ($words.Count -eq 0) { return }
    $program = $words[0]
    $answer = @(& $program completion powershell -- @words 2>$null)
    if ($answer.Count -eq 0) { return }
    $names = @($answer | Select-Object -SkipLast 1)
    $more = $answer[-1]
    if ($more.StartsWith(':kubectl ') -and -not $wordToComplete.StartsWith('-')) {
        $ask = $more.Substring(9).Split(' ')
        $names += @(& kubectl @ask 2>$null | ForEach-Object { $_ -replace '^(namespace|pod|node|serviceaccount)/', '' })
    }
    $names | Where-Object { $_.StartsWith($wordToComplete) -and ($wordToComplete -ne '' -or -not $_.StartsWith('-')) } |
        ForEach-Object { [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_) }
}
`;
