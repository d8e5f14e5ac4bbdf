/** What this program is called by who types it: `pullwright`, or `kubectl pullwright` where it is a plugin. */
import type { CommandIo, ProgramName } from './command.ts';

/**
 * The last part of the path that a program was called by.
 *
 * @example
 * ```ts
 * import { nameCalled } from './program-name.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(nameCalled('/usr/local/bin/kubectl-pullwright'), 'kubectl-pullwright');
 * ```
 */
export function nameCalled(argv0: string): string {
  return argv0.slice(argv0.lastIndexOf('/') + 1);
}

/**
 * kubectl runs `kubectl-pullwright` for `kubectl pullwright`.
 *
 * @param argv0 what the caller wrote as the program's name
 */
export function programName(argv0: string): ProgramName {
  return nameCalled(argv0) === 'kubectl-pullwright' ? 'kubectl pullwright' : 'pullwright';
}

/**
 * `text` with command lines of this program as they are typed for `program`.
 *
 * @param isCommand whether a word is a subcommand: every other "pullwright" is somebody's word for something else
 * @example
 * ```ts
 * import { asTyped } from './program-name.ts';
 * import assert from 'node:assert/strict';
 *
 * const isCommand = (word: string) => word === 'doctor';
 * const say = (text: string) => asTyped(text, 'kubectl pullwright', isCommand);
 * assert.equal(say('Run "pullwright doctor web"'), 'Run "kubectl pullwright doctor web"');
 * assert.equal(say('namespace pullwright is there'), 'namespace pullwright is there');
 * ```
 */
export function asTyped(text: string, program: ProgramName, isCommand: (word: string) => boolean): string {
  if (program === 'pullwright') return text;
  return text.replaceAll(
    /(?<![\w./-])(kubectl )?pullwright (?=(<command>|[a-z-]+))/g,
    (found: string, kubectl: string | undefined, word: string) =>
      kubectl === undefined && (word === '<command>' || isCommand(word)) ? `${program} ` : found,
  );
}

/**
 * The same places to write to, where command lines are as they are typed: on stderr and in what a terminal shows. What goes into
 * a pipe or a file is the same under each name.
 *
 * @param isHelp whether stdout takes a text for people, wherever it goes
 */
export function speakingAs(io: CommandIo, isCommand: (word: string) => boolean, isHelp: boolean): CommandIo {
  const { program = 'pullwright' } = io;
  if (program === 'pullwright') return io;
  const typed = (text: string): string => asTyped(text, program, isCommand);
  const speaking = <S extends CommandIo['stderr']>(stream: S): S =>
    Object.create(stream, {
      write: { value: (text: string) => stream.write(typed(text)) },
      isTTY: { value: stream.isTTY },
    }) as S;
  return Object.create(io, {
    stdout: {
      get: () => (isHelp || io.stdout.isTTY === true ? speaking(io.stdout) : io.stdout),
    },
    stderr: { get: () => speaking(io.stderr) },
  }) as CommandIo;
}
