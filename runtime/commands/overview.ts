/** What the program says when no command was run: the list of commands, and what was probably meant. */
import { nearWord } from '../rules/text/near-word.ts';
import { onOneLine } from '../rules/text/printable.ts';
import { COMMANDS, type CommandGroup } from './table.ts';

const GROUPS: readonly (readonly [CommandGroup, string])[] = [
  ['ask', 'Ask; nothing is changed:'],
  ['change', 'Prepare and clean up:'],
  ['run', 'Run; mostly in pods and on nodes:'],
];

/** The list of commands, by who calls them. */
export function overview(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const groups = GROUPS.flatMap(([group, title]) => [
    title,
    ...Object.entries(COMMANDS)
      .filter(([, entry]) => entry.group === group)
      .map(([name, entry]) => `  ${name.padEnd(width)}  ${entry.summary}`),
    '',
  ]);
  return [
    'Pull credentials as code for Kubernetes and OpenShift fleets.',
    '',
    'Usage: pullwright <command> [options]',
    '',
    ...groups,
    'Run "pullwright <command> --help" for its options and an example.',
    '',
  ].join('\n');
}

/** For a word that is no command. */
export function unknownCommand(word: string): string {
  const known = Object.keys(COMMANDS);
  const near = nearWord(word, known);
  const wanted = near === undefined ? `expected one of ${known.join(', ')}` : `did you mean "${near}"?`;
  return onOneLine(`Unknown command "${word}": ${wanted}`);
}
