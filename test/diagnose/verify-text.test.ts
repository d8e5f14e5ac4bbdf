/** Output of `verify` when a table is not readable, and its notes about the expiry of a credential. */
import assert from 'node:assert/strict';
import type { VerifyReport } from '../../runtime/diagnose/model/verification.ts';
import { verifyText } from '../../runtime/diagnose/views/text.ts';
import { type Case, table, test } from '../support/suite.ts';

const credential = {
  key: 'registry.example.com/team',
  source: 'Secret/shop/pull',
  verdict: 'Unreachable',
  message: '"registry.example.com" does not answer',
  images: 2,
} as const;

const report = (expiresAt?: string): VerifyReport =>
  ({
    checkedAt: '2026-06-01T00:00:00Z',
    images: [
      {
        image: 'registry.example.com/team/app:1',
        usedBy: 'Pod/shop/web',
        pullable: 'unknown',
        findings: [],
        attempts: [
          {
            verdict: 'Unreachable',
            reference: 'registry.example.com/team/app:1',
            credential: { key: credential.key, source: credential.source },
            message: credential.message,
          },
        ],
      },
    ],
    credentials: [{ ...credential, ...(expiresAt === undefined ? {} : { expiresAt }) }],
  }) as unknown as VerifyReport;

const text = (columns?: number, expiresAt?: string): string =>
  verifyText(report(expiresAt), 14, (_colour, words) => words, columns);

interface Row extends Case {
  readonly columns?: number;
  readonly ends?: string;
  readonly says: RegExp;
}

const rows: readonly Row[] = [
  {
    name: 'no terminal',
    reason: 'a table that is not cut, for files and pipes',
    says: /^VERDICT .* MESSAGE\nUnreachable  registry.* does not answer\n/,
  },
  {
    name: '40 columns',
    reason: 'the reason must be readable, so each row is a record',
    columns: 40,
    says: /^Unreachable\n {3}registry\.example\.com\/team\/app:1\n {3}credential:\n/,
  },
  {
    name: '40 columns, the reason',
    reason: 'whole, over several lines',
    columns: 40,
    says: /\n {3}"registry\.example\.com" does not\n {3}answer\n/,
  },
  { name: 'a wide terminal', reason: 'a table', columns: 200, says: /^VERDICT .* MESSAGE\n/ },
  {
    name: 'an end that has come',
    reason: 'it is not soon: it is over, though no registry has rejected it',
    ends: '2026-05-01T00:00:00Z',
    says: /2026-05-01T00:00:00Z \(expired\)/,
  },
  {
    name: 'an end that comes',
    reason: 'within the days of --warn-days',
    ends: '2026-06-03T00:00:00Z',
    says: /2026-06-03T00:00:00Z \(soon\)/,
  },
];

table(test, rows, ({ columns, ends, says }) => {
  assert.match(text(columns, ends), says);
});

test('no line is wider than the terminal, but for names that are', () => {
  for (const line of text(40).split('\n').slice(0, -2))
    assert.ok(line.length <= 40 || !line.trim().includes(' '), line);
});
