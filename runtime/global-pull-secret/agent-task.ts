/**
 * The node task of the global pull secret: reads the mounted secrets, and says what should be in the kubelet's file.
 *
 * Source of the rule: requirement 1: global-pull-secret when it is present and not empty, else original-pull-secret; an
 * invalid global one is an error, because falling back would take the tenant's credentials away without a word.
 */
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import type { FileContent } from '../host/atomic-file.ts';
import { errnoOf, fileError } from '../host/file-errors.ts';
import type { Ledger, Look, NodeTask } from '../node/task.ts';
import { describeError, PullwrightError } from '../rules/errors.ts';
import { type Redacted, redact } from '../rules/redacted.ts';
import { ABSENT } from '../rules/rollout-journal.ts';
import { type AgentDocument, type Foreign, parseDocument, wantedDocument } from './agent-document.ts';

/** Where things are. */
export interface AgentTaskOptions {
  readonly globalFile: string;
  readonly originalFile: string;
  readonly file: string;
  readonly unit: string;
  readonly foreign: Foreign;
}

/** Larger than any Secret can be. */
const MAX_BYTES = 4 << 20;

export function agentTask(options: AgentTaskOptions): NodeTask {
  return {
    name: 'global-pull-secret',
    file: options.file,
    unit: options.unit,
    look: (present, ledger) => look(options, present, ledger),
  };
}

function look(options: AgentTaskOptions, file: FileContent | undefined, ledger: Ledger): Look {
  const there = file === undefined ? undefined : readable(file.bytes);
  const present = file === undefined ? ABSENT : (there?.digest ?? 'unreadable');
  try {
    const { from, document: source } = chosenSource(options);
    const wanted = wantedDocument(source, there, { foreign: options.foreign, ledger });
    return {
      present,
      from,
      entries: wanted.document.entries,
      foreign: wanted.foreign.length,
      wanted: {
        digest: wanted.document.digest,
        source: source.digest,
        removes: wanted.removes,
        bytes: wanted.document.bytes,
        ledgerDuring: wanted.ledgerDuring,
        ledgerAfter: wanted.ledgerAfter,
      },
    };
  } catch (error) {
    const problem =
      error instanceof PullwrightError
        ? error
        : new PullwrightError(describeError(error), { code: 'SourceInvalid' });
    return { present, wanted: undefined, problem };
  }
}

/** Which source counts, and what it says. */
function chosenSource(options: AgentTaskOptions): { from: 'global' | 'original'; document: AgentDocument } {
  const global = readSource(options.globalFile);
  if (global !== undefined && global.size > 0)
    return {
      from: 'global',
      document: parseDocument(global.bytes, `global pull secret "${options.globalFile}"`),
    };
  const original = readSource(options.originalFile);
  if (original !== undefined)
    return {
      from: 'original',
      document: parseDocument(original.bytes, `original pull secret "${options.originalFile}"`),
    };
  throw new PullwrightError(`Cannot read original pull secret "${options.originalFile}": it does not exist`, {
    code: 'SourceMissing',
    hint: 'Look whether Secret kube-system/original-pull-secret exists and is mounted',
  });
}

/** Follows links, because the kubelet's mounts are made of them. */
function readSource(path: string): { bytes: Redacted<Uint8Array>; size: number } | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    const stat = fstatSync(fd);
    if (stat.size > MAX_BYTES)
      throw new PullwrightError(
        `Cannot read "${path}": it has ${stat.size} bytes, wanted at most ${MAX_BYTES}`,
        {
          code: 'SourceInvalid',
        },
      );
    const bytes = new Uint8Array(readFileSync(fd));
    return { bytes: redact(bytes), size: bytes.length };
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
    throw fileError('read', path, error);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** A file that nobody could read is replaced; what it says is of no interest. */
function readable(bytes: Redacted<Uint8Array>): AgentDocument | undefined {
  try {
    return parseDocument(bytes, 'the present file');
  } catch {
    return undefined;
  }
}
