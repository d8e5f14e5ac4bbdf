/**
 * The document of a pull secret, judged entry by entry.
 *
 * The kubelet gives up a whole document for one bad entry, and CRI-O for one field of the wrong type. Here every entry gets
 * its own verdict, so that one bad entry can be left out and reported while the others go on.
 *
 * Source of the rule: docker-config-go.ts says what the consumers do with the whole document.
 */

import { type JsonMember, type JsonNode, parseGoJson } from '../go/json.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';
import { positionsOf, type TextPosition } from '../text/position.ts';
import { type DockerConfigEntry, describeKind, judgeEntry } from './entry.ts';
import { type ConfigWarning, entryMembers } from './entry-members.ts';
import type { DockerConfigFormat } from './fields.ts';
import { decodeForContainers, decodeForKubelet } from './go-reader.ts';

export type { DockerConfigEntry, EntryFault } from './entry.ts';
export type { ConfigWarning } from './entry-members.ts';
export type { DockerConfigFormat } from './fields.ts';

/** Why a document as a whole cannot be used. */
export interface ConfigProblem {
  readonly reason: 'Empty' | 'NotJson' | 'NotAnObject' | 'AuthsMissing' | 'AuthsNotAnObject';
  /** A sentence without its end, that shows nothing of the document: `has no "auths"`. */
  readonly message: string;
  readonly position?: TextPosition;
  /** Why the kubelet gives up the document, in its words, which may show one character of it; undefined when it does not. */
  readonly kubeletFault: string | undefined;
  /** The same for containers/image. */
  readonly containersFault: string | undefined;
}

export interface DockerConfig {
  readonly format: DockerConfigFormat;
  /** In the order of the document. */
  readonly entries: readonly DockerConfigEntry[];
  /** Whether there is an `auths` object at all (always true for `dockercfg`). */
  readonly hasAuths: boolean;
  /** Top-level fields besides `auths`, repeated ones included. */
  readonly fields: Redacted<readonly JsonMember[]>;
  readonly warnings: readonly ConfigWarning[];
  /** Why the kubelet discards the whole document, in its words; undefined when it does not. */
  readonly kubeletFault: string | undefined;
  /** Why containers/image discards the whole document, in its words. */
  readonly containersFault: string | undefined;
}

export type DockerConfigResult =
  | { readonly ok: true; readonly config: DockerConfig }
  | { readonly ok: false; readonly problem: ConfigProblem };

/**
 * Reads the document of a pull secret. Total: every text gives a config or a problem.
 *
 * @param text the decoded value of `.dockerconfigjson` (or `.dockercfg`)
 * @param format @default {'config.json'}
 * @example
 * ```ts
 * import { parseDockerConfig } from './docker-config.ts';
 * import { redact } from '../redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const parsed = parseDockerConfig(redact('{"auths":{"quay.io":{"auth":"dTpw"},"r.io":{"auth":"!"}}}'));
 * assert.ok(parsed.ok);
 * assert.deepEqual(parsed.config.entries.map((entry) => entry.fault?.reason), [undefined, 'AuthNotBase64']);
 * assert.equal(parsed.config.entries[0]?.kubelet?.username, 'u');
 * ```
 */
export function parseDockerConfig(
  text: Redacted<string>,
  format: DockerConfigFormat = 'config.json',
): DockerConfigResult {
  const plain = reveal(text);
  const parsed = parseGoJson(plain);
  if (!parsed.ok) {
    const { plainText, goText, at } = parsed.fault;
    const empty = plain.trim() === '';
    return {
      ok: false,
      problem: {
        reason: empty ? 'Empty' : 'NotJson',
        message: empty ? 'is empty' : `is not JSON: ${plainText}`,
        position: positionsOf(plain)(at),
        kubeletFault: goText,
        containersFault: goText,
      },
    };
  }
  return readDocument(plain, parsed.value, format);
}

function readDocument(plain: string, document: JsonNode, format: DockerConfigFormat): DockerConfigResult {
  const positions = positionsOf(plain);
  if (document.kind !== 'object') {
    const message = `is ${describeKind(document.kind)}, expected a JSON object`;
    return unusable('NotAnObject', message, {
      position: positions(document.at),
      ...faults(document, format),
    });
  }
  const found = entryMembers(document.members, format);
  if (found.wrong !== undefined) {
    const message = `has "auths" as ${describeKind(found.wrong.kind)}, expected an object`;
    const position = positions(found.wrong.at);
    return unusable('AuthsNotAnObject', message, { position, ...faults(document, format) });
  }
  const entries = [...found.entries.values()].map((member) => judgeEntry(member, positions(member.at)));
  const { fields } = found;
  // Reading it all again as the consumers do is needed only where one of them may stumble.
  const clean =
    fields.length === 0 && found.warnings.length === 0 && entries.every((entry) => entry.readable);
  return {
    ok: true,
    config: {
      format,
      entries,
      hasAuths: found.present,
      fields: redact(fields),
      warnings: found.warnings,
      ...(clean ? NO_FAULTS : faults(document, format)),
    },
  };
}

type Faults = Pick<ConfigProblem, 'kubeletFault' | 'containersFault'>;

const NO_FAULTS: Faults = { kubeletFault: undefined, containersFault: undefined };

function faults(document: JsonNode, format: DockerConfigFormat): Faults {
  const kubelet = decodeForKubelet(document, format);
  const containers = decodeForContainers(document, format);
  return {
    kubeletFault: kubelet.ok ? undefined : kubelet.goText,
    containersFault: containers.ok ? undefined : containers.goText,
  };
}

function unusable(
  reason: ConfigProblem['reason'],
  message: string,
  rest: Omit<ConfigProblem, 'reason' | 'message'>,
): DockerConfigResult {
  return { ok: false, problem: { reason, message, ...rest } };
}
