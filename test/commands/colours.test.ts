/** Colours on a terminal: when there are any; and widths. */
import assert from 'node:assert/strict';
import type { CommandIo } from '../../runtime/cli/command.ts';
import { columnsOf, control, paintFor } from '../../runtime/cli/terminal.ts';
import { wrapped } from '../../runtime/core/text.ts';
import { renderStatus } from '../../runtime/diagnose/checks/status.ts';
import { reportText } from '../../runtime/diagnose/views/text.ts';
import { table, test } from '../support/suite.ts';

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

test('a width is that of COLUMNS, else of the terminal; none without either', () => {
  assert.equal(columnsOf(ioWith({ COLUMNS: '20' }, true)), 20);
  assert.equal(columnsOf(ioWith({ COLUMNS: '0' }, true)), 80);
  assert.equal(columnsOf(ioWith({}, true, 0)), undefined);
  assert.equal(columnsOf(ioWith({}, false)), undefined);
});

test('colours take no room in a line', () => {
  const paint = paintFor(ioWith({ TERM: 'xterm-256color' }, true));
  assert.deepEqual(wrapped(`a ${paint('red', 'red')} word`, 16).length, 1);
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
