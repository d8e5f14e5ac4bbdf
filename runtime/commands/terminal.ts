/** What is known about who reads: colours and width. */
import { styleText } from 'node:util';
import { type Paint, plain } from '../rules/diagnose/explain-text.ts';
import type { CommandIo } from './command.ts';
import { control } from './people.ts';

/** Colours on a terminal only, and not when NO_COLOR is set. */
export function paintFor(io: CommandIo): Paint {
  const colours = io.stdout.isTTY === true && (io.env['NO_COLOR'] ?? '') === '';
  if (!colours) return plain;
  return (style, text) => {
    const [open = '', close = ''] = styleText(style, '|', { validateStream: false }).split('|');
    return `${control(open)}${text}${control(close)}`;
  };
}

/** Width to wrap or cut at: what COLUMNS says, else that of the terminal; undefined without either. */
export function columnsOf({ env, stdout }: CommandIo): number | undefined {
  const said = Number(env['COLUMNS'] ?? Number.NaN);
  if (Number.isInteger(said) && said > 0) return said;
  return stdout.isTTY === true && (stdout.columns ?? 0) > 0 ? stdout.columns : undefined;
}
