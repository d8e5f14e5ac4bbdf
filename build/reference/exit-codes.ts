/** The page of exit codes. */
import { OUTCOMES } from '../../runtime/pull-secret-adapter/outcome.ts';
import type { CommandPage } from './cli.ts';
import { codeSpan, prose, table } from './markdown.ts';

/** `docs/reference/exit-codes.md` */
export function exitCodesPage(pages: readonly CommandPage[]): string {
  return [
    '# Exit codes',
    '',
    ...table(
      ['command', 'exit codes'],
      pages.map(({ spec }) => [
        `[${codeSpan(spec.name)}](cli.md#${spec.name})`,
        prose(spec.exitCodes ?? '0 done, 1 failed, 2 wrong usage'),
      ]),
    ),
    '## job',
    '',
    'The Job of the pull secret adapter ends with a code of its own for each outcome; a code of class `terminal` or `denied` fails the Job at once, every other is',
    'tried again.',
    '',
    ...table(
      ['outcome', 'code', 'class'],
      Object.entries(OUTCOMES).map(([reason, kind]) => [codeSpan(reason), String(kind.exitCode), kind.class]),
    ),
  ].join('\n');
}
