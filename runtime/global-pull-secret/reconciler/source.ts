/**
 * Which of the two mounted pull secrets the node uses.
 *
 * Source of the rule: requirement 1, "Node-level synchronization": the merged secret when it is there, else the copy of the
 * platform's. A merged secret that cannot be read or is no docker config stops the pass: falling back to the platform's
 * secret would take the tenant's credentials from running nodes for a passing fault.
 */
import { upstreamAgentFault } from '../../rules/docker-config/upstream.ts';
import { type Redacted, reveal } from '../../rules/redacted.ts';

/** What reading a mounted file gave. */
export type MountedFile =
  | { readonly state: 'present'; readonly content: Redacted<string> }
  | { readonly state: 'absent' }
  /** `reason`: such as `EACCES`. */
  | { readonly state: 'unreadable'; readonly reason: string };

export type PullSecretChoice =
  | {
      readonly ok: true;
      readonly used: 'global' | 'original';
      readonly content: Redacted<string>;
      /** For the log. */
      readonly message: string;
    }
  | { readonly ok: false; readonly message: string };

/**
 * Chooses.
 *
 * @example
 * ```ts
 * import { choosePullSecret } from './source.ts';
 * import { redact } from '../../rules/redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const original = { state: 'present', content: redact('{"auths":{}}') } as const;
 * const choice = choosePullSecret({ state: 'absent' }, original);
 * assert.equal(choice.ok && choice.used, 'original');
 * assert.equal(choosePullSecret({ state: 'present', content: redact('{') }, original).ok, false);
 * ```
 */
export function choosePullSecret(global: MountedFile, original: MountedFile): PullSecretChoice {
  if (global.state === 'unreadable') {
    return { ok: false, message: `failed to read global pull secret from file: ${global.reason}` };
  }
  if (global.state === 'present' && reveal(global.content) !== '') {
    return accept('global', global.content, 'Global pull secret content found, using it');
  }
  if (original.state !== 'present') {
    const reason = original.state === 'absent' ? 'no such file or directory' : original.reason;
    return { ok: false, message: `failed to read original pull secret from file: ${reason}` };
  }
  const why = global.state === 'absent' ? 'not found' : 'is empty';
  return accept('original', original.content, `Global pull secret file ${why}, using original pull secret`);
}

function accept(used: 'global' | 'original', content: Redacted<string>, message: string): PullSecretChoice {
  const fault = upstreamAgentFault(content);
  if (fault === undefined) return { ok: true, used, content, message };
  return { ok: false, message: `failed to check and fix file: invalid docker config.json content: ${fault}` };
}
