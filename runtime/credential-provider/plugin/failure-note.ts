/**
 * What the last run for a ServiceAccount failed with, in a file that root alone reads: the kubelet shows a user only that the
 * registry wants a password. The installer of the node reads the notes and tells the API server.
 *
 * One file for each account of a namespace, beside CRI-O's auth files, and one for what concerns the node; the next run that
 * does well removes it. No line of a run holds a token or a credential, and so does no note.
 */
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { replaceFile } from '../../host/atomic-file.ts';
import { sha256Hex } from '../../host/sha256.ts';
import { NOTES } from '../../node/janitor.ts';
import type { LogSubject } from './log.ts';

/** A run that failed. */
export interface FailureNote {
  /** Of the pod; absent where the run did not come to know it. */
  readonly namespace?: string;
  readonly serviceAccount?: string;
  readonly pod?: string;
  readonly podUid?: string;
  readonly image?: string;
  /** What failed, and what to do. */
  readonly message: string;
}

/** Notes on a node at most: a tenant makes namespaces and accounts as it likes. */
export const MOST_NOTES = 100;
/** Characters of a note's text; a Role to apply is in the longest. */
const MOST_TEXT = 2000;

/**
 * Keeps the note of a run's account, or takes it back, and with it that of the node, where the run did well. Gives up quietly:
 * it must not fail a pull.
 *
 * @param failure the last line of a run that failed
 */
export function noteOutcome(authDir: string, subject: LogSubject, failure: string | undefined): void {
  const folder = `${authDir}/${NOTES}`;
  try {
    if (failure === undefined)
      for (const about of [subject, {}]) rmSync(`${folder}/${noteName(about)}`, { force: true });
    else write(folder, noteName(subject), { ...subject, message: failure.slice(0, MOST_TEXT) });
  } catch {
    // The journal has it.
  }
}

/** The file of an account's note; of the node's, where the run did not come to know the pod. */
function noteName({ namespace, serviceAccount = '' }: LogSubject): string {
  const account = namespace === undefined ? '' : `${namespace}/${serviceAccount}`;
  // By hash alone: no name from outside becomes a part of a path.
  return `${sha256Hex(account)}.json`;
}

function write(folder: string, name: string, note: FailureNote): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const names = readdirSync(folder);
  if (names.length >= MOST_NOTES && !names.includes(name)) return;
  const bytes = new TextEncoder().encode(JSON.stringify(note));
  replaceFile(`${folder}/${name}`, bytes, { mode: 0o600, durable: false, verify: false });
}
