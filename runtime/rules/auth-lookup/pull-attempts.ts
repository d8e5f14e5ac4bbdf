/**
 * The attempts behind an explanation: which credential goes to which place, with the credential itself, so that a registry can
 * be asked what it thinks of each.
 *
 * Source of the rule: explain.ts, which says who sends what where; nothing is decided here a second time.
 */

import { type Explanation, explainImage } from '../diagnose/explain.ts';
import type { EntryPlace, ExplainInput, Sent } from '../diagnose/explain-types.ts';
import type { DockerConfigEntry } from '../docker-config/docker-config.ts';
import type { ExpiringCredential } from '../docker-config/expiry.ts';
import type { AuthSource } from './kubelet.ts';
import { readAuthSource } from './read-source.ts';

/** One credential (or none) at one place. */
export interface PullAttempt {
  /** Where: host, path, tag or digest. */
  readonly reference: string;
  readonly kind: 'mirror' | 'source';
  /** The entry that is sent; absent for an anonymous attempt. */
  readonly entry?: EntryPlace;
  readonly credential?: ExpiringCredential;
  /** Why there is nothing to ask: a credential helper, an unreadable Secret. */
  readonly notAsked?: string;
}

/**
 * All attempts for an image, in the order in which CRI-O makes them.
 *
 * @example
 * ```ts
 * import { pullAttempts } from './pull-attempts.ts';
 * import { parseImageReference } from './image-reference.ts';
 * import { redact } from '../redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const image = parseImageReference('quay.io/team/app:1');
 * assert.ok(image.ok);
 * const text = redact('{"auths":{"quay.io":{"auth":"bWU6cHc="}}}');
 * const node = { name: 'node', format: 'config.json', text } as const;
 * const { attempts } = pullAttempts({ image: image.reference, secrets: [], node, mirrors: [] });
 * assert.deepEqual(attempts.map(({ reference, entry }) => [reference, entry?.key]), [['quay.io/team/app:1', 'quay.io']]);
 * ```
 */
export function pullAttempts(input: ExplainInput): {
  readonly explanation: Explanation;
  readonly attempts: readonly PullAttempt[];
} {
  const explanation = explainImage(input);
  const credentials = credentialsOf(input);
  const attempts = explanation.places.flatMap(({ reference, kind, crio }) =>
    sentTo(crio, explanation, credentials).map((sent): PullAttempt => ({ reference, kind, ...sent })),
  );
  return { explanation, attempts };
}

type SentThing = Omit<PullAttempt, 'reference' | 'kind'>;
type Credentials = (entry: EntryPlace, user: 'kubelet' | 'containers') => ExpiringCredential | undefined;

function sentTo(sent: Sent, explanation: Explanation, credentials: Credentials): readonly SentThing[] {
  if (sent.what === 'nothing') return [{}];
  if (sent.what === 'failure') return [{ notAsked: sent.why }];
  if (sent.what === 'helper')
    return [{ notAsked: `the credential helper "${sent.helper}" of the node is not asked from here` }];
  if (sent.what === 'entry') return [withCredential(sent.entry, credentials(sent.entry, 'containers'))];
  // An entry without a user falls through to the file, which has an attempt of its own.
  return explanation.kubelet.tried
    .filter((one) => one.username !== '')
    .map(({ source, key, origin, position }) => {
      const entry = { source, key, ...(origin === undefined ? {} : { origin }), position };
      return withCredential(entry, credentials(entry, 'kubelet'));
    });
}

function withCredential(entry: EntryPlace, credential: ExpiringCredential | undefined): SentThing {
  return credential === undefined ? { entry, notAsked: 'its entry cannot be read' } : { entry, credential };
}

/** Finds what an entry holds. */
function credentialsOf({ secrets, node, pullFile }: ExplainInput): Credentials {
  const documents = [...secrets.map(({ source }) => source), node, pullFile?.source];
  const bySource = new Map(
    documents.flatMap((source): [string, AuthSource][] =>
      source === undefined ? [] : [[source.name, source]],
    ),
  );
  return ({ source: name, key }, user) => {
    const source = bySource.get(name);
    return source === undefined ? undefined : entriesOf(source).get(key)?.[user];
  };
}

type Held = Pick<DockerConfigEntry, 'kubelet' | 'containers'>;

/** One document serves many images. */
const held = new WeakMap<AuthSource, ReadonlyMap<string, Held>>();

function entriesOf(source: AuthSource): ReadonlyMap<string, Held> {
  const known = held.get(source);
  if (known !== undefined) return known;
  const parsed = readAuthSource(source);
  const entries = parsed.ok ? parsed.config.entries : [];
  const made = new Map(entries.map((entry): [string, Held] => [entry.key.written, entry]));
  held.set(source, made);
  return made;
}
