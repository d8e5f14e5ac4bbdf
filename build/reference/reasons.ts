/** The reference pages of conditions, events and error codes. */
import { codeSpan, grouped, prose, table } from './markdown.ts';
import type { SaidReason } from './said.ts';

/** Section titles by folder. Other folders keep their name. */
const TITLES: Readonly<Record<string, string>> = {
  commands: 'commands',
  engine: 'every reconciler',
  node: 'every program on a node',
  kube: 'API servers',
  http: 'requests',
  registry: 'registries',
};

/** Returns the section of a file: the part of the program that it belongs to. */
export function partOf(file: string): string {
  const [, part = ''] = file.split('/');
  return TITLES[part] ?? part;
}

/** `docs/reference/conditions.md` */
export function conditionsPage(said: readonly SaidReason[]): string {
  const mine = said.filter(({ as }) => as === 'condition' || as === 'verdict');
  const types = grouped(
    mine
      .filter(({ as }) => as === 'condition')
      .flatMap((one) => one.type.map((type) => ({ ...one, name: type }))),
    ({ name }) => name,
  ).filter(([type]) => /^[A-Z]/.test(type) && !['Normal', 'Warning'].includes(type));
  return [
    '# Conditions and verdicts',
    '',
    'Every reason of a condition or verdict, with its message: `{name}` is replaced by a value, and `…` by words that depend on it. `Ready` summarizes',
    'an object; `Stalled` and `Reconciling` exist only while true, as in [kstatus](https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus).',
    'If an error is the reason, its code is used: see [errors](errors.md).',
    '',
    '## Types',
    '',
    ...table(
      ['type', 'reported by', 'reasons'],
      types.map(([type, entries]) => [
        codeSpan(type),
        unique(entries.map(({ file }) => partOf(file))).join(', '),
        unique(entries.map(({ reason }) => reason))
          .map(codeSpan)
          .join(', '),
      ]),
    ),
    ...byPart(mine, ['reason', 'as', 'says'], said),
  ].join('\n');
}

/** `docs/reference/events.md` */
export function eventsPage(said: readonly SaidReason[]): string {
  const events = said.filter(({ as }) => as === 'event');
  return [
    '# Events',
    '',
    'Events of `events.k8s.io/v1` that Pullwright sends; `regarding` is the affected object. A repeated event becomes a series. A failure has the code of',
    'its [error](errors.md) as reason.',
    '',
    ...byPart(events, ['reason', 'type', 'note'], said),
  ].join('\n');
}

/** `docs/reference/errors.md` */
export function errorsPage(said: readonly SaidReason[]): string {
  const errors = said.filter(({ as }) => as === 'error');
  return [
    '# Error codes',
    '',
    'Each error has a stable code. Programs log it in the field `code`; reconcilers use it as the reason of a condition and of an event.',
    '',
    ...byPart(errors, ['code', 'says'], said),
  ].join('\n');
}

/**
 * Renders a section with a table for each part of the program: one row per reason, with its messages. A reason without messages
 * gets those of the same part in `all` for the reason or the condition type, else those of the only part that has any.
 */
function byPart(
  said: readonly SaidReason[],
  head: readonly string[],
  all: readonly SaidReason[],
): readonly string[] {
  return grouped(said, ({ file }) => partOf(file)).flatMap(([part, entries]) => [
    `## ${part}`,
    '',
    ...table(
      head,
      grouped(entries, ({ reason }) => reason).map(([reason, same]) => [
        codeSpan(reason),
        ...(head.length > 2 ? [unique(same.flatMap(kindsOf)).join(', ')] : []),
        wordsFor(reason, same, all),
      ]),
    ),
  ]);
}

function wordsFor(reason: string, same: readonly SaidReason[], all: readonly SaidReason[]): string {
  const others = all.filter((one) => one.reason === reason || one.type.includes(reason));
  const parts = grouped(others, ({ file }) => partOf(file)).filter(([, some]) => wordsOf(some).length > 0);
  const [beside] = parts.filter(([part]) => part === partOf(same[0]?.file ?? '') || parts.length === 1);
  return wordsOf(same).join('<br>') || wordsOf(beside?.[1] ?? []).join('<br>') || '…';
}

function kindsOf({ as, type }: SaidReason): readonly string[] {
  return type.length > 0 || as !== 'condition' ? type : ['condition'];
}

function wordsOf(said: readonly SaidReason[]): readonly string[] {
  return unique(said.flatMap(({ says }) => says.map(prose))).filter(
    (text) => !/^[….]*(\{message\})?$/.test(text),
  );
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}
