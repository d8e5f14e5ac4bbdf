/** The one builder of every pull Secret that is written at run time. */
import { MAX_SECRET_BYTES } from '../../rules/docker-config/merge.ts';
import { UNJUDGED } from '../../rules/docker-config/removal-guard.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { SecretObject } from '../../rules/kubernetes/object.ts';
import { type Redacted, redact, reveal } from '../../rules/redacted.ts';
import { judgedMarkOf, toBase64 } from './platform.ts';

/** Input of {@link pullSecretObject}. */
export interface PullSecretInput {
  readonly name: string;
  readonly namespace: string;
  /** Base64 of the docker config. */
  readonly value: Redacted<string>;
  /** @default {'kubernetes.io/dockerconfigjson'} */
  readonly type?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Whether nodes are to hold whatever the document lacks. @default {false} */
  readonly unjudged?: boolean;
}

/** What the mark beside a document takes of what one Secret may hold: a SHA-256 in hexadecimal digits. */
export const MARK_BYTES = 64;

/** A copy of a document that fills a Secret goes without its mark: agents then judge by themselves. */
function hasRoom(value: Redacted<string>): boolean {
  return Buffer.byteLength(reveal(value), 'base64') + MARK_BYTES <= MAX_SECRET_BYTES;
}

/**
 * A Secret with the value under `.dockerconfigjson`, and the mark that its removals are judged beside it. Always `data`, never `stringData`: with client-side apply, tools that
 * own the object do not remove a key dropped from `stringData`.
 *
 * @example
 * ```ts
 * import { pullSecretObject } from './merged-object.ts';
 * import { redact } from '../../rules/redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const secret = pullSecretObject({ name: 'a', namespace: 'ns', value: redact('e30=') });
 * assert.equal(secret.type, 'kubernetes.io/dockerconfigjson');
 * assert.deepEqual(Object.keys(secret.data ?? {}), ['.dockerconfigjson', 'pullwright-judged']);
 * ```
 */
export function pullSecretObject(input: PullSecretInput): SecretObject {
  const { name, namespace, labels, annotations } = input;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name,
      namespace,
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
    },
    type: input.type ?? 'kubernetes.io/dockerconfigjson',
    data: {
      [NAMES.dataKey]: input.value,
      ...(hasRoom(input.value) ? { [NAMES.judgedKey]: markOf(input) } : {}),
    },
  };
}

function markOf({ unjudged, value }: PullSecretInput): Redacted<string> {
  return unjudged === true ? toBase64(redact(UNJUDGED)) : judgedMarkOf(value);
}
