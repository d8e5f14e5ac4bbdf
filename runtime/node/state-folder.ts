/** What a node task remembers on the node: a folder of mode 0700, beside the file, of files that are always whole. */
import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type FileContent, readWhole, removeFile, replaceFile, sweepLeftovers } from '../host/atomic-file.ts';
import { fileError } from '../host/file-errors.ts';
import { PullwrightError } from '../rules/errors.ts';
import { redact, reveal } from '../rules/redacted.ts';
import { EMPTY_JOURNAL, type Journal, parseJournal } from '../rules/rollout-journal.ts';
import type { Ledger } from './task.ts';

/** What is stored in one file, so that journal and ledger cannot disagree. */
export interface Stored {
  readonly journal: Journal;
  readonly ledger: Ledger;
}

/** Nothing is written before the first change. */
export class StateFolder {
  readonly path: string;
  readonly #journal: string;
  readonly #copy: string;

  constructor(path: string) {
    this.path = path;
    this.#journal = join(path, 'journal.json');
    this.#copy = join(path, 'saved.json');
  }

  /** Makes the folder. A folder that others may write to is refused: who writes here decides what root writes. */
  prepare(): void {
    try {
      mkdirSync(this.path, { recursive: true, mode: 0o700 });
      const stat = lstatSync(this.path);
      if (!stat.isDirectory())
        throw new PullwrightError(`Cannot use "${this.path}": it is no folder`, { code: 'NotAFolder' });
      if ((stat.mode & 0o077) !== 0) chmodSync(this.path, 0o700);
    } catch (error) {
      throw fileError('prepare', this.path, error);
    }
  }

  /** What was stored; whatever cannot be understood counts as nothing, and `damaged` says so. */
  load(): Stored & { readonly damaged: boolean } {
    const content = readWhole(this.#journal);
    if (content === undefined) return { journal: EMPTY_JOURNAL, ledger: {}, damaged: false };
    const document = parseJson(content);
    const journal = isRecord(document) ? parseJournal(document['journal']) : undefined;
    const ledger = isRecord(document) ? parseLedger(document['ledger']) : undefined;
    const damaged = journal === undefined || ledger === undefined;
    return { journal: journal ?? EMPTY_JOURNAL, ledger: ledger ?? {}, damaged };
  }

  store(stored: Stored): void {
    this.prepare();
    replaceFile(
      this.#journal,
      Buffer.from(JSON.stringify({ journal: stored.journal, ledger: stored.ledger })),
    );
  }

  /** Keeps `content` (undefined: that there was no file) for a rollback. */
  saveCopy(content: FileContent | undefined): void {
    this.prepare();
    const document =
      content === undefined
        ? { absent: true }
        : {
            mode: content.mode,
            uid: content.uid,
            gid: content.gid,
            bytes: Buffer.from(reveal(content.bytes)).toString('base64'),
          };
    replaceFile(this.#copy, redact(new Uint8Array(Buffer.from(JSON.stringify(document)))));
  }

  /** What {@link saveCopy} kept. `none` when there is no copy, or none that can be read. */
  loadCopy(): FileContent | 'absent' | 'none' {
    const document = parseJson(readWhole(this.#copy));
    if (!isCopy(document)) return 'none';
    if (document.absent === true) return 'absent';
    const { mode, uid, gid } = document;
    return { mode, uid, gid, bytes: redact(new Uint8Array(Buffer.from(document.bytes, 'base64'))) };
  }

  /** The copy holds credentials: it goes as soon as it cannot be needed any more. */
  dropCopy(): void {
    removeFile(this.#copy);
  }

  sweep(): number {
    if (lstatSync(this.path, { throwIfNoEntry: false }) === undefined) return 0;
    return sweepLeftovers(this.#journal) + sweepLeftovers(this.#copy);
  }
}

interface Copy {
  readonly absent?: boolean;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly bytes: string;
}

function isCopy(value: unknown): value is Copy {
  if (!isRecord(value)) return false;
  if (value['absent'] === true) return true;
  const { bytes, mode, uid, gid } = value;
  return typeof bytes === 'string' && [mode, uid, gid].every(Number.isInteger);
}

function parseLedger(value: unknown): Ledger | undefined {
  if (!isRecord(value)) return undefined;
  const whole = Object.values(value).every(
    (digests) => Array.isArray(digests) && digests.every((digest) => typeof digest === 'string'),
  );
  return whole ? (value as Ledger) : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What the file says; undefined for an absent file and for what is not JSON. */
function parseJson(content: FileContent | undefined): unknown {
  if (content === undefined) return undefined;
  try {
    return JSON.parse(Buffer.from(reveal(content.bytes)).toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}
