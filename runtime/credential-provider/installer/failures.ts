/** What the provider's runs on this node failed with lately: read from its notes, and said to those who look. */
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import type { NodeState } from '../../node/events.ts';
import { NOTES } from '../../node/janitor.ts';
import type { Said } from '../../node/reporter.ts';
import { PROVIDER_FAILED } from '../../rules/credential-provider/report-names.ts';
import type { Verdict } from '../../rules/kubernetes/pull-status.ts';
import { isRecord } from '../../rules/record.ts';
import { type FailureNote, MOST_NOTES } from '../plugin/failure-note.ts';

const MOST_BYTES = 16_384;
const TEXTS = ['namespace', 'serviceAccount', 'pod', 'podUid', 'image'] as const;

/** The notes in the folder of auth files, by name of the file; what is none is skipped. */
export function readFailures(authDir: string): readonly FailureNote[] {
  const folder = `${authDir}/${NOTES}`;
  return namesIn(folder)
    .toSorted()
    .slice(0, MOST_NOTES)
    .flatMap((name) => noteIn(`${folder}/${name}`));
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.json'));
  } catch {
    return [];
  }
}

function noteIn(path: string): readonly FailureNote[] {
  try {
    const stat = lstatSync(path);
    if (!stat.isFile() || stat.size > MOST_BYTES) return [];
    const note: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (!isRecord(note) || typeof note['message'] !== 'string') return [];
    const known = TEXTS.flatMap((name) => (typeof note[name] === 'string' ? [[name, note[name]]] : []));
    return [{ ...Object.fromEntries(known), message: note['message'] }];
  } catch {
    // It was taken back just now, or was being written when the machine stopped.
    return [];
  }
}

/** Whom a note is about: `team-a/app`, or the node. */
export function accountOf({ namespace, serviceAccount = '' }: FailureNote): string {
  return namespace === undefined ? 'node' : `${namespace}/${serviceAccount}`;
}

/** The Event has the rest: a hundred verdicts with a Role each would be a large object. */
const MOST_VERDICT = 500;

function shortened(text: string): string {
  return text.length > MOST_VERDICT ? `${text.slice(0, MOST_VERDICT - 3)}...` : text;
}

/** One entry of the node's PullStatus. */
export function failureVerdict(note: FailureNote): Verdict {
  const image = note.image === undefined ? '' : `image "${note.image}": `;
  return {
    subject: accountOf(note),
    verdict: 'Warning',
    reason: PROVIDER_FAILED,
    message: shortened(`${image}${note.message}`),
  };
}

/** The state of the node with who gets no credentials, by name as far as a line goes. The node is as it should be all the same. */
export function withFailures(state: NodeState, notes: readonly FailureNote[]): NodeState {
  return notes.length === 0 ? state : { ...state, message: `${state.message}; ${failureText(notes)}` };
}

function failureText(notes: readonly FailureNote[]): string {
  const shown = notes.slice(0, 3).map(accountOf).join(', ');
  const more = notes.length > 3 ? ` and ${notes.length - 3} more` : '';
  return `the last run of the provider failed for ${shown}${more}`;
}

/** Remembers what was said, so that a pod which tries again and again is spoken of once for each cause. */
export class FailureNews {
  #said: ReadonlyMap<string, string> = new Map();

  /** The notes that say something new. */
  newIn(notes: readonly FailureNote[]): readonly FailureNote[] {
    const before = this.#said;
    const now = notes.map((note) => [accountOf(note), `${note.podUid ?? ''} ${note.message}`] as const);
    this.#said = new Map(now);
    return notes.filter((_, index) => {
      const [account, text] = now[index] ?? ['', ''];
      return before.get(account) !== text;
    });
  }
}

/** The Event on the pod, where its owner looks; on the node where no pod is known. */
export function failureEvent(note: FailureNote): Said {
  const { namespace, pod, podUid, message } = note;
  const said = { type: 'Warning', reason: PROVIDER_FAILED, action: 'Pull', note: message } as const;
  if (namespace === undefined || pod === undefined) return said;
  const uid = podUid === undefined ? {} : { uid: podUid };
  return { ...said, regarding: { apiVersion: 'v1', kind: 'Pod', namespace, name: pod, ...uid } };
}
