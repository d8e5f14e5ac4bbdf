/**
 * Which entries of the tenant's pull secret go into the merge, and what its owner is told about each.
 *
 * Source of the rule: requirement 1, "Registry Precedence and Conflict Resolution"; the kubelet's order of credentials.
 */

import { matchesImage } from '../auth-lookup/match-images.ts';
import { compareBytes } from '../go/bytes.ts';
import type { Verdict } from '../kubernetes/pull-status.ts';
import { reveal } from '../redacted.ts';
import { counted } from '../text/counted.ts';
import { type EncodedEntry, encodeEntry } from './canonical.ts';
import type { ConfigProblem, DockerConfig, DockerConfigEntry } from './docker-config.ts';

/** An entry of the additional secret that the original one keeps out. */
export interface MergeConflict {
  /** The key of the additional secret. */
  readonly registry: string;
  /** The key of the original secret. */
  readonly original: string;
  /** Whether both are the same text. */
  readonly exact: boolean;
}

/** An entry that goes into the result. */
export interface AddedEntry {
  readonly encoded: EncodedEntry;
  readonly source: 'additional' | 'lastGood';
}

export interface AdditionalInput {
  /** Of the additional secret, in the order of the document. */
  readonly entries: readonly DockerConfigEntry[];
  /** All entries of the original secret; a broken one keeps its registry all the same. */
  readonly original: readonly DockerConfigEntry[];
  /** Entries of an earlier merge, by the key under which they were written. */
  readonly lastGood: ReadonlyMap<string, DockerConfigEntry>;
  /** Bytes that may be added. */
  readonly room: number;
}

export interface AdditionalResult {
  readonly added: readonly AddedEntry[];
  readonly conflicts: readonly MergeConflict[];
  readonly verdicts: readonly Verdict[];
}

/** Judges every entry of the additional secret. */
export function judgeAdditional(input: AdditionalInput): AdditionalResult {
  const judge = new Judge(input);
  const { entries } = input;
  // Which of two equal keys is taken, and what still fits, must not depend on the order of the document.
  for (const entry of entries.toSorted(byPreference)) judge.judge(entry);
  const verdicts = entries.flatMap((entry) => judge.verdictOf(entry));
  return { added: judge.added, conflicts: judge.conflicts(entries), verdicts };
}

function byPreference(a: DockerConfigEntry, b: DockerConfigEntry): number {
  const plain = (entry: DockerConfigEntry): number => (entry.key.written === entry.key.portable ? 0 : 1);
  return (
    compareBytes(a.key.portable, b.key.portable) ||
    plain(a) - plain(b) ||
    compareBytes(a.key.written, b.key.written)
  );
}

class Judge {
  readonly added: AddedEntry[] = [];
  readonly #input: AdditionalInput;
  readonly #platform = new Map<string, string>();
  readonly #taken = new Map<string, string>();
  readonly #verdicts = new Map<DockerConfigEntry, Verdict>();
  readonly #conflicts = new Map<DockerConfigEntry, MergeConflict>();
  #room: number;

  constructor(input: AdditionalInput) {
    this.#input = input;
    this.#room = input.room;
    for (const { key } of input.original) {
      for (const identity of key.identities) this.#platform.set(identity, key.written);
    }
  }

  verdictOf(entry: DockerConfigEntry): readonly Verdict[] {
    const verdict = this.#verdicts.get(entry);
    return verdict === undefined ? [] : [verdict];
  }

  conflicts(entries: readonly DockerConfigEntry[]): readonly MergeConflict[] {
    return entries.flatMap((entry) => this.#conflicts.get(entry) ?? []);
  }

  judge(entry: DockerConfigEntry): void {
    if (entry.key.fault !== undefined) return this.#reject(entry, '');
    const original = this.#platformKeyOf(entry);
    if (original !== undefined) return this.#shadow(entry, original);
    const hub = this.#hiddenHub(entry);
    if (hub !== undefined) return this.#shadow(entry, hub, 'WildcardHidesHub');
    const twin = this.#taken.get(entry.key.portable);
    if (twin !== undefined) {
      const message = `is the same registry as "${twin}" of this secret, which is used: remove one of them`;
      return this.#say(entry, 'Shadowed', 'DuplicateSpelling', message);
    }
    if (entry.fault === undefined) return this.#take(entry, entry, 'additional');
    const last = this.#input.lastGood.get(entry.key.portable);
    if (last === undefined) return this.#reject(entry, '');
    this.#take(entry, last, 'lastGood');
  }

  /** The platform's key that means the same. */
  #platformKeyOf({ key }: DockerConfigEntry): string | undefined {
    return key.identities
      .map((identity) => this.#platform.get(identity))
      .find((found) => found !== undefined);
  }

  /** The kubelet looks at "index.docker.io" only when nothing else matches, so a wildcard for any host would hide it. */
  #hiddenHub({ key }: DockerConfigEntry): string | undefined {
    const hub = this.#platform.get('docker.io');
    if (hub === undefined || !key.portable.includes('*') || key.portable.includes('/')) return undefined;
    const judged = matchesImage(key.portable, 'docker.io/library/any');
    return judged.ok && judged.match ? hub : undefined;
  }

  #shadow(entry: DockerConfigEntry, original: string, why?: string): void {
    const { written, meaning } = entry.key;
    const exact = written === original;
    this.#conflicts.set(entry, { registry: written, original, exact });
    const what = exact
      ? 'is in the original pull secret too'
      : `means "${original}" of the original pull secret`;
    const hides = `would hide "${original}" of the original pull secret`;
    const advice =
      why === undefined
        ? `use a longer key, such as "${meaning}/<namespace>", or remove the entry`
        : 'name the hosts that are meant';
    const reason = why ?? (exact ? 'OriginalWins' : 'SpellingVariant');
    this.#say(entry, 'Shadowed', reason, `${why === undefined ? what : hides}, which wins: ${advice}`);
  }

  /** Takes the value of `used`, which is `entry` or its last good form. */
  #take(entry: DockerConfigEntry, used: DockerConfigEntry, source: AddedEntry['source']): void {
    const { written, portable } = entry.key;
    const encoded = encodeEntry(used, portable);
    const size = Buffer.byteLength(reveal(encoded.text)) + 1;
    if (size > this.#room) {
      const message = `does not fit: the merged secret would be larger than a Secret may be, by ${size - this.#room} bytes`;
      return this.#say(entry, 'Rejected', 'SecretFull', message);
    }
    this.#room -= size;
    this.#taken.set(portable, written);
    this.added.push({ encoded, source });
    if (source === 'lastGood') return this.#reject(entry, '; the last good one stays in use');
    const rewritten = written !== portable;
    this.#say(entry, 'Accepted', rewritten ? 'Rewritten' : 'Added', this.#useOf(entry));
  }

  #useOf({ key }: DockerConfigEntry): string {
    const below = this.#parentOf(key.meaning);
    const parts = [
      key.written === key.portable ? 'is used' : `is used as "${key.portable}"`,
      below === undefined ? '' : `before the platform's "${below}"`,
      key.portable.includes('*') ? '(by the kubelet only: CRI-O knows no wildcards)' : '',
    ];
    return parts.filter((part) => part !== '').join(' ');
  }

  #parentOf(meaning: string): string | undefined {
    for (let end = meaning.lastIndexOf('/'); end > 0; end = meaning.lastIndexOf('/', end - 1)) {
      const found = this.#platform.get(meaning.slice(0, end));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #reject(entry: DockerConfigEntry, after: string): void {
    const { line, column } = entry.position;
    const place = `(line ${line}, column ${column})`;
    const message = `${entry.fault?.message ?? 'cannot be used'} ${place}${after}`;
    this.#say(entry, 'Rejected', entry.fault?.reason ?? 'KeyInvalid', message);
  }

  #say(entry: DockerConfigEntry, verdict: Verdict['verdict'], reason: string, message: string): void {
    this.#verdicts.set(entry, { subject: entry.key.written, verdict, reason, message });
  }
}

/** What the owner of the additional secret should know about the document besides its entries. */
export function documentWarnings(config: DockerConfig): readonly Verdict[] {
  const ignored = reveal(config.fields).map((member) => ({
    reason: 'FieldIgnored',
    subject: `"${member.key}"`,
    message: 'is not merged: of the additional pull secret only "auths" counts',
  }));
  return [...config.warnings, ...ignored].map((warning) => ({ verdict: 'Warning', ...warning }));
}

/** Verdict on an additional document that cannot be used at all. */
export function documentVerdict(problem: ConfigProblem, kept: number): Verdict {
  const place =
    problem.position === undefined
      ? ''
      : ` (line ${problem.position.line}, column ${problem.position.column})`;
  const after =
    kept === 0
      ? ''
      : `; ${counted(kept, 'entry of the last good one stays', 'entries of the last good one stay')} in use`;
  return {
    subject: '.dockerconfigjson',
    verdict: 'Rejected',
    reason: problem.reason,
    message: `${problem.message}${place}${after}`,
  };
}
