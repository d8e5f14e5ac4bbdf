/** What is known about who reads: colours and width. */
import { type Paint, plain } from '../rules/diagnose/explain-text.ts';
import type { CommandIo } from './command.ts';
import { control } from './people.ts';

type Style = Parameters<Paint>[0];

/** How a style begins, and how it ends. */
type Codes = readonly [open: string, close: string];

const SHAPES = { bold: ['1', '22'], dim: ['2', '22'] } as const satisfies Partial<Record<Style, Codes>>;

/**
 * Orange, yellow and blue: a pair of them is told apart by everybody, green and red are not. The words beside them say the same.
 * 256 colours: the palette's numbers.
 */
export const PALETTE = { red: 202, yellow: 226, green: 39 } as const;

/** Of terminals with eight colours. */
const FEW = { red: '31', yellow: '33', green: '36' } as const;

/**
 * Colours on a terminal only, and not when NO_COLOR is set, whatever it says, or where the terminal is called dumb.
 *
 * @param io `COLORTERM` and `TERM` say how many colours there are
 */
export function paintFor({ stdout, env }: CommandIo): Paint {
  const { NO_COLOR = '', TERM = '', COLORTERM = '' } = env;
  if (stdout.isTTY !== true || NO_COLOR !== '' || TERM === 'dumb') return plain;
  const hasMany = COLORTERM !== '' || TERM.includes('256color');
  return (style, text) => {
    const [open, close] = codesOf(style, hasMany);
    return `${control(`\u001b[${open}m`)}${text}${control(`\u001b[${close}m`)}`;
  };
}

function codesOf(style: Style, hasMany: boolean): Codes {
  if (style === 'bold' || style === 'dim') return SHAPES[style];
  return [hasMany ? `38;5;${PALETTE[style]}` : FEW[style], '39'];
}

/** Width to wrap or cut at: what COLUMNS says, else that of the terminal; undefined without either. */
export function columnsOf({ env, stdout }: CommandIo): number | undefined {
  const said = Number(env['COLUMNS'] ?? Number.NaN);
  if (Number.isInteger(said) && said > 0) return said;
  return stdout.isTTY === true && (stdout.columns ?? 0) > 0 ? stdout.columns : undefined;
}
