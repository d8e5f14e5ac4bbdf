/** Random YAML: scalars that old and new readers take for different things, in maps and lists as manifests have them. */
import fc from 'fast-check';
import { words } from '../pieces.ts';

const jumble = (alphabet: string, maxLength: number) =>
  fc
    .array(fc.constantFrom(...Array.from(alphabet)), { minLength: 1, maxLength })
    .map((parts) => parts.join(''));

const SAID = words(
  'yes Yes YES yEs y Y on On ON oN no No n N off Off true True TRUE tRue false False null Null NULL nULL ~ = on1 yes. nope ' +
    '0 00 007 08 0644 0o644 0O7 0x1f 0X1F 0b11 0B1 0b2 -0b1 +0x1 1_000 _1 1_ 1__2 0_7 0x_f 1:20 1:20:30 190:20 2001-01-01 ' +
    '2001-01-01T00:00:00Z 1e3 1E3 1e 1e+3 .5 .5e1 5. 5.e1 -.5 +.5 . .. -. +1 -1 + -- 1.2.3 10.0.0.1 1.0 1.50 0.1 1e999 ' +
    '12345678901234567890 9007199254740991 0xffffffffffffffff quay.io quay.io:443 r.io/a:b *.x a#b a&b v1 12h 1d a@b $x %25',
);
const NUMBERS = jumble('0127+-._eExXoObB', 7);
/** Every text that is to be one plain scalar. */
export const PLAIN: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: SAID },
  NUMBERS.filter((text) => !/^(?:-+|\.\.\.|[-?:])$|^--- /.test(text) && text !== '---'),
);
const QUOTED = PLAIN.chain((text) => fc.constantFrom(`"${text}"`, `'${text}'`));
const TAGGED = PLAIN.map((text) => `!!str ${text}`);
const SCALAR = fc.oneof({ weight: 6, arbitrary: PLAIN }, QUOTED, TAGGED, fc.constant(''));
/** Keys without fractions and numbers beyond 64 bits: Go rounds the first to 32 bits and rejects the second. */
const KEY = fc.oneof(
  { weight: 3, arbitrary: words('a b name value data x-y k8s.io/z') },
  PLAIN.filter((text) => !/^[-+0-9.].*[.eE]|^\.|[0-9]{16}|f{16}/.test(text)),
  QUOTED,
);

interface Lines {
  readonly lines: readonly string[];
  /** Whether they may follow `key: ` on one line. */
  readonly inline: boolean;
}

const indent = (lines: readonly string[], by: string): readonly string[] =>
  lines.map((line) => (line === '' ? '' : by + line));

const NODE = fc.letrec<{ node: Lines; map: Lines; list: Lines }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    SCALAR.map((text) => ({ lines: [text], inline: true })),
    fc
      .array(
        SCALAR.filter((text) => !/[,[\]{}]/.test(text) && text !== ''),
        { maxLength: 3 },
      )
      .map((items) => ({ lines: [`[${items.join(', ')}]`], inline: true })),
    fc
      .tuple(fc.constantFrom('|', '>', '|-', '>-', '|+'), fc.array(PLAIN, { minLength: 1, maxLength: 3 }))
      .map(([style, texts]) => ({ lines: [style, ...indent(texts, '  ')], inline: true })),
    tie('map'),
    tie('list'),
  ),
  map: fc
    .uniqueArray(fc.tuple(KEY, tie('node')), { minLength: 1, maxLength: 4, selector: ([key]) => key })
    .map((members) => ({ lines: members.flatMap(([key, value]) => member(key, value)), inline: false })),
  list: fc.array(tie('node'), { minLength: 1, maxLength: 3 }).map((items) => ({
    lines: items.flatMap(({ lines: [first = '', ...rest], inline }) =>
      inline || first !== '' ? [`- ${first}`, ...indent(rest, '  ')] : ['-'],
    ),
    inline: false,
  })),
}));

function member(key: string, { lines: [first = '', ...rest], inline }: Lines): readonly string[] {
  return inline ? [`${key}: ${first}`, ...rest] : [`${key}:`, ...indent([first, ...rest], '  ')];
}

const MERGED = fc
  .tuple(PLAIN, PLAIN, fc.boolean())
  .map(
    ([one, two, first]) =>
      `base: &b\n  a: ${one}\n  c: x\nuse:\n${first ? `  <<: *b\n  a: ${two}` : `  a: ${two}\n  <<: *b`}\n`,
  );

/** Whole documents. */
export const DOCUMENT: fc.Arbitrary<string> = fc.oneof(
  { weight: 8, arbitrary: NODE.map.map(({ lines }) => `${lines.join('\n')}\n`) },
  PLAIN.map((text) => `a: ${text}`),
  MERGED,
);

/** Texts that we may have to write. */
export const WRITTEN: fc.Arbitrary<string> = fc.oneof(
  PLAIN,
  SAID.chain((text) =>
    fc.constantFrom(` ${text}`, `${text} `, `${text}\n`, `${text}: x`, `- ${text}`, `#${text}`, `${text} #x`),
  ),
  jumble('ab:-#&*!|>\'"%@`{}[],? \n\t~<=\u0085\u2028\ufeffé', 6),
);
