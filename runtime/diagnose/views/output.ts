/** The answer of a command in the form that `-o` names, the same for all of them. */
import type { CommandIo, ExitCode } from '../../cli/command.ts';
import { columnsOf } from '../../cli/terminal.ts';
import { onOneLine } from '../../core/text.ts';
import { dataText } from '../../kube/yaml.ts';

/** For `outputFlag`: the forms of kubectl. */
export const OUTPUT_FORMS = ['text', 'wide', 'name', 'json', 'yaml'] as const;

export interface Answer {
  /** For programs. */
  readonly data: unknown;
  /** Objects, for `-o name`. */
  readonly names?: readonly string[];
  /** For people, in so many columns; undefined: nothing is cut. */
  readonly text: (columns: number | undefined) => string;
  /** Why no object is named. @default {the text for people} */
  readonly nothing?: string;
  readonly failed: boolean;
}

/** Prints; where there is no object to name, stderr says why. */
export function answer(
  io: CommandIo,
  form: (typeof OUTPUT_FORMS)[number],
  { data, names = [], text, nothing, failed }: Answer,
): ExitCode {
  if (form === 'json' || form === 'yaml') io.stdout.write(dataText(form, data));
  else if (form !== 'name') io.stdout.write(text(form === 'wide' ? undefined : columnsOf(io)));
  else if (names.length > 0)
    io.stdout.write([...new Set(names)].map((one) => `${onOneLine(one)}\n`).join(''));
  else io.stderr.write(nothing === undefined ? text(undefined) : `${onOneLine(nothing)}\n`);
  return failed ? 1 : 0;
}
