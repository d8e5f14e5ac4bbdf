/** Command lines with hostile input. */
import { join } from 'node:path';
import { COMMANDS } from '../../runtime/commands/table.ts';

/** Every command, on the dump in the folder `from`, and with `word` wherever a command takes one. */
export function commandsOn(from: string, word: string): readonly (readonly string[])[] {
  const nowhere = join(from, word);
  return [
    ['explain', `quay.io/a:${word}`, '--from', from],
    ['explain', 'quay.io/a/b:1', '--pod', 'web', '--namespace', 'web', '--from', from],
    ['doctor', 'web', '--namespace', 'web', '--from', from],
    ['doctor', word, '--namespace', 'web', '--from', from],
    ['doctor', '--all', '--all-namespaces', '--from', from],
    ['mirrors', `quay.io/${word}`, '--from', from],
    ['mirrors', 'quay.io/a@sha256:'.padEnd(81, '0'), '--from', from],
    ['status', '--from', from, '-o', 'wide'],
    ['validate', from],
    ['reconcile', '--from', from, '--dry-run'],
    ['reconcile', '--from', nowhere],
    ['report', '--from', from],
    ['report', '--from', from, '--markdown'],
    ['verify', `r.io/${word}`, '--from', from],
    ['synth', '--fleet', nowhere],
    ['test', nowhere],
    [word],
    // Whatever else a command takes, and those that come later.
    ...Object.keys(COMMANDS).map((name) => [name, `--${word}`]),
  ];
}
