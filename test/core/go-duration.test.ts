/** Durations are read and written as Go does. The expected numbers are those of Go 1.26's `time.ParseDuration`. */
import assert from 'node:assert/strict';
import { formatGoDuration, parseGoDuration } from '../../runtime/core/go/duration.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Row extends Case {
  readonly text: string;
  readonly is: number | undefined;
  /** Output of Go's `Duration.String`. */
  readonly written?: string;
}

const rows: readonly Row[] = [
  { name: 'parts', reason: 'they add up', text: '1h30m', is: 5_400_000_000_000, written: '1h30m0s' },
  {
    name: 'seconds and milliseconds',
    reason: 'written with a point',
    text: '2s50ms',
    is: 2_050_000_000,
    written: '2.05s',
  },
  {
    name: 'a fraction',
    reason: '2.05 times 10^9 is not whole in floating point',
    text: '2.05s',
    is: 2_050_000_000,
    written: '2.05s',
  },
  {
    name: 'a negative fraction',
    reason: 'the sign is of the whole',
    text: '-37.05s',
    is: -37_050_000_000,
    written: '-37.05s',
  },
  {
    name: 'no digit before the point',
    reason: 'Go takes it',
    text: '.5s',
    is: 500_000_000,
    written: '500ms',
  },
  { name: 'no digit after the point', reason: 'Go takes it', text: '5.s', is: 5_000_000_000, written: '5s' },
  { name: 'less than a nanosecond', reason: 'cut, not rounded', text: '0.9ns', is: 0, written: '0s' },
  {
    name: 'micro in two spellings',
    reason: 'Go knows U+00B5 and U+03BC',
    text: '1µs1μs',
    is: 2000,
    written: '2µs',
  },
  { name: 'minus nothing', reason: 'there is one zero', text: '-0s', is: 0, written: '0s' },
  { name: 'more than 292 years', reason: 'it does not fit into 64 bits', text: '2562048h', is: undefined },
  {
    name: 'many small parts that are too much',
    reason: 'the sum counts',
    text: '2562047h2562047h',
    is: undefined,
  },
  {
    name: 'a number of many digits',
    reason: 'refused, and not slowly',
    text: `${'9'.repeat(15_000)}s`,
    is: undefined,
  },
  { name: 'leading zeros', reason: 'they count nothing', text: `${'0'.repeat(100)}7s`, is: 7_000_000_000 },
  {
    name: 'a long fraction',
    reason: 'what is too small to see is left out',
    text: `1.${'3'.repeat(100)}s`,
    is: 1_333_333_333,
  },
  {
    name: 'nanoseconds beside hours',
    reason: 'no exponent: the kubelet would not start with it',
    text: '18m0.00000036s',
    is: 1_080_000_000_360,
    written: '18m0.00000036s',
  },
  {
    name: 'many digits after the point',
    reason: 'Go reads what fits into 64 bits, then multiplies in floating point',
    text: '.3333333333333333333333m',
    is: 20_000_000_000,
    written: '20s',
  },
  {
    name: 'zeros after the point',
    reason: 'they are no digits that would have to fit',
    text: '0.00000999999999999999999990001h',
    is: 36_000_000,
    written: '36ms',
  },
  { name: 'no unit', reason: 'only 0 may go without', text: '7', is: undefined },
  { name: 'a blank', reason: 'Go takes none', text: '1h 30m', is: undefined },
  { name: 'nothing', reason: 'no duration', text: '', is: undefined },
];

table(test, rows, ({ text, is, written }) => {
  const parsed = parseGoDuration(text);
  assert.equal(parsed, is);
  if (written !== undefined) assert.equal(formatGoDuration(parsed ?? Number.NaN), written);
});
