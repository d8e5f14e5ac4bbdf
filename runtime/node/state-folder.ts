/**
 * What a node task remembers on the node: a folder of mode 0700, beside the file, of files that are always whole.
 *
 * State of a later version is set aside and kept: overwriting it would lose what that version needs when it comes back,
 * refusing to work would leave the node without credentials.
 */

import { chmodSync, copyFileSync, lstatSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type FileContent, readWhole, removeFile, replaceFile, sweepLeftovers } from '../host/atomic-file.ts';
import { fileError } from '../host/file-errors.ts';
import { giveToRoot } from '../host/ownership.ts';
import { PullwrightError } from '../rules/errors.ts';
import { isRecord } from '../rules/record.ts';
import { redact, reveal } from '../rules/redacted.ts';
import { EMPTY_JOURNAL, type Journal, parseJournal } from '../rules/rollout/journal.ts';
import type { Ledger } from './task.ts';

/**
 * Raised when journal.json or saved.json change in a way that an older program would misread. A file without it is of version 1.
 */
export const STATE_VERSION = 1;

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

  /** Makes the folder, and sees to it that only root may write here: who does decides what root writes elsewhere. */
  prepare(): void {
    try {
      mkdirSync(this.path, { recursive: true, mode: 0o700 });
      const stat = lstatSync(this.path);
      if (!stat.isDirectory())
        throw new PullwrightError(`Cannot use "${this.path}": it is no folder`, { code: 'NotAFolder' });
      if ((stat.mode & 0o077) !== 0) chmodSync(this.path, 0o700);
      for (const path of [this.path, this.#journal, this.#copy]) giveToRoot(path);
    } catch (error) {
      throw fileError('prepare', this.path, error);
    }
  }

  /**
   * What was stored; whatever cannot be understood counts as nothing, and `damaged` says so. `newer`: a later version of this
   * program wrote it.
   */
  load(): Stored & { readonly damaged: boolean; readonly newer: boolean } {
    const content = readWhole(this.#journal);
    if (content === undefined) return { journal: EMPTY_JOURNAL, ledger: {}, damaged: false, newer: false };
    const document = parseJson(content);
    const record = isRecord(document) ? document : {};
    const newer = isNewer(record) || (isRecord(record['journal']) && isNewer(record['journal']));
    const journal = isNewer(record) ? undefined : parseJournal(record['journal']);
    const ledger = parseLedger(record['ledger']);
    const damaged = journal === undefined || ledger === undefined;
    return { journal: journal ?? EMPTY_JOURNAL, ledger: ledger ?? {}, damaged, newer };
  }

  /** Keeps a copy of what a later version wrote, for the day when that version is back. Gives its path. */
  setAside(): string {
    const aside = `${this.#journal}.newer`;
    try {
      copyFileSync(this.#journal, aside);
    } catch (error) {
      throw fileError('copy', this.#journal, error);
    }
    return aside;
  }

  store(stored: Stored): void {
    this.prepare();
    replaceFile(
      this.#journal,
      Buffer.from(JSON.stringify({ version: STATE_VERSION, journal: stored.journal, ledger: stored.ledger })),
    );
  }

  /** Keeps `content` (undefined: that there was no file) for a rollback. */
  saveCopy(content: FileContent | undefined): void {
    this.prepare();
    const document =
      content === undefined
        ? { version: STATE_VERSION, absent: true }
        : {
            version: STATE_VERSION,
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

  /** Takes the folder away with all that is in it. */
  forget(): void {
    try {
      rmSync(this.path, { recursive: true, force: true });
    } catch (error) {
      throw fileError('remove', this.path, error);
    }
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
  if (!isRecord(value) || isNewer(value)) return false;
  if (value['absent'] === true) return true;
  const { bytes, mode, uid, gid } = value;
  return typeof bytes === 'string' && [mode, uid, gid].every(Number.isInteger);
}

/** Numbers only: anything else under this name is damage. */
function isNewer(value: Readonly<Record<string, unknown>>): boolean {
  const { version } = value;
  return typeof version === 'number' && version > STATE_VERSION;
}

function parseLedger(value: unknown): Ledger | undefined {
  if (!isRecord(value)) return undefined;
  const whole = Object.values(value).every(
    (digests) => Array.isArray(digests) && digests.every((digest) => typeof digest === 'string'),
  );
  return whole ? (value as Ledger) : undefined;
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
