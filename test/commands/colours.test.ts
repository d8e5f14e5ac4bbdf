/** Colours on a terminal: when there are any, and whether people with another sense of colour tell them apart. */
import assert from 'node:assert/strict';
import type { CommandIo } from '../../runtime/cli/command.ts';
import { columnsOf, control, PALETTE, paintFor } from '../../runtime/cli/terminal.ts';
import { renderStatus } from '../../runtime/diagnose/checks/status.ts';
import { reportText } from '../../runtime/diagnose/views/text.ts';
import { suite, table } from '../support/suite.ts';

const test = suite('colours and widths');
const MARK = control('');

function ioWith(env: NodeJS.ProcessEnv, isTTY: boolean, columns = 80): CommandIo {
  const stdout = { write: () => true, isTTY, columns };
  return {
    stdout,
    stderr: stdout,
    stdin: process.stdin,
    env,
    signal: new AbortController().signal,
  } as unknown as CommandIo;
}

table(
  test,
  [
    {
      name: 'a terminal with many colours',
      reason: '256',
      env: { TERM: 'xterm-256color' },
      isTTY: true,
      open: '38;5;202',
    },
    {
      name: 'a terminal with true colours',
      reason: 'those have 256 too',
      env: { COLORTERM: 'truecolor' },
      isTTY: true,
      open: '38;5;202',
    },
    { name: 'a terminal with few', reason: 'linux console', env: { TERM: 'linux' }, isTTY: true, open: '31' },
    {
      name: 'NO_COLOR',
      reason: 'no-color.org',
      env: { TERM: 'xterm-256color', NO_COLOR: '1' },
      isTTY: true,
      open: undefined,
    },
    {
      name: 'an empty NO_COLOR',
      reason: 'no-color.org: not empty',
      env: { TERM: 'xterm-256color', NO_COLOR: '' },
      isTTY: true,
      open: '38;5;202',
    },
    {
      name: 'a dumb terminal',
      reason: 'shows the codes themselves',
      env: { TERM: 'dumb' },
      isTTY: true,
      open: undefined,
    },
    {
      name: 'a pipe',
      reason: 'a program reads it',
      env: { TERM: 'xterm-256color' },
      isTTY: false,
      open: undefined,
    },
  ],
  ({ env, isTTY, open }) => {
    const wanted = open === undefined ? 'x' : `\u001b[${open}mx\u001b[39m`;
    // Codes of ours carry a mark, by which they are told from codes in names until they are written.
    assert.equal(paintFor(ioWith(env, isTTY))('red', 'x').replaceAll(MARK, ''), wanted);
  },
);

type Rgb = readonly [number, number, number];

/** Of the 6 x 6 x 6 cube of 256 colours, as linear light. */
function lightOf(number: number): Rgb {
  const at = number - 16;
  const level = (step: number): number => (step === 0 ? 0 : 55 + 40 * step) / 255;
  const linear = (value: number): number =>
    value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  return [linear(level(Math.floor(at / 36))), linear(level(Math.floor(at / 6) % 6)), linear(level(at % 6))];
}

/** Machado, Oliveira and Fernandes, 2009, severity 1. */
const SENSES: Readonly<Record<string, readonly [Rgb, Rgb, Rgb]>> = {
  everything: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  'no red': [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  'no green': [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  'no blue': [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

function distance(a: number, b: number, rows: readonly [Rgb, Rgb, Rgb]): number {
  const seen = (number: number): readonly number[] => {
    const light = lightOf(number);
    return rows.map((row) => {
      const linear = row.reduce((sum, part, index) => sum + part * (light[index] ?? 0), 0);
      return Math.max(0, Math.min(1, linear)) ** (1 / 2.2);
    });
  };
  const [first, second] = [seen(a), seen(b)];
  return Math.hypot(...first.map((value, index) => value - (second[index] ?? 0)));
}

test('every pair of colours is told apart with every sense of colour; plain red and green would not be', () => {
  const { red, yellow, green } = PALETTE;
  for (const [sense, rows] of Object.entries(SENSES))
    for (const [a, b] of [
      [red, yellow],
      [red, green],
      [yellow, green],
    ] as const)
      assert.ok(distance(a, b, rows) > 0.3, `${a} and ${b} with ${sense}: ${distance(a, b, rows)}`);
  // 124 and 28 of the palette: the colours that terminals call red and green.
  assert.ok(
    distance(
      124,
      28,
      SENSES['no green'] ?? [
        [0, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
      ],
    ) < 0.3,
  );
});

test('a width is that of COLUMNS, else of the terminal; none without either', () => {
  assert.equal(columnsOf(ioWith({ COLUMNS: '20' }, true)), 20);
  assert.equal(columnsOf(ioWith({ COLUMNS: '0' }, true)), 80);
  assert.equal(columnsOf(ioWith({}, true, 0)), undefined);
  assert.equal(columnsOf(ioWith({}, false)), undefined);
});

const ROWS = [
  {
    check: 'EntriesRejected',
    severity: 'warning',
    state: 'Attention',
    reporter: 'global-pull-secret',
    subject: 'PullStatus/kube-system/a',
    message: `${'a long sentence about it '.repeat(8)}end`,
  },
] as const;

for (const columns of [20, 40, 80])
  test(`status and report fit ${columns} columns, but for single words`, () => {
    for (const line of renderStatus(ROWS, columns).split('\n'))
      assert.ok(line.length <= columns, `${line.length}: ${line}`);
    const [row] = ROWS;
    const cases = [{ ...row, cluster: 'prod', advice: row.message }];
    const problems = [
      {
        check: 'a',
        system: 'pulls',
        verdict: 'broken',
        title: 'Something is wrong with it',
        clusters: ['prod'],
        pods: 0,
        cases,
      },
    ] as const;
    const report = { version: 1, madeAt: '', source: '', clusters: [], problems, unread: [] } as const;
    const [lines] = reportText(report, (_style, text) => text, columns).split('CLUSTER');
    for (const line of (lines ?? '').split('\n'))
      if (line.length > columns) assert.match(line, /^ *(.{0,16} )?\S+$/);
    assert.match(lines ?? '', /✕ broken/);
  });

test.run();
