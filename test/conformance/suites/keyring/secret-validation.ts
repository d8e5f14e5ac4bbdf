/** Secrets that the API server accepts, and Secrets that the kubelet can read. */
import { kubeletKeyring, lookupForKubelet } from '../../../../runtime/core/docker-config/kubelet-keyring.ts';
import { pullSecretSource } from '../../../../runtime/core/docker-config/pull-secret.ts';
import type { SecretObject } from '../../../../runtime/core/kubernetes/object.ts';
import { redact, reveal } from '../../../../runtime/core/redacted.ts';
import { validateSecret } from '../../../../runtime/diagnose/checks/docker-config.ts';
import { meta } from '../../../support/meta.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Input {
  readonly type: string;
  readonly key: string;
  readonly data: string;
}

interface Answer {
  readonly apiserverError: string;
  readonly kubeletError: string;
  readonly kubeletSeesEntryForRio: boolean;
}

export const suite: ConformanceSuite<Input, Answer> = {
  cases(document) {
    return (document as { cases: readonly (Input & Answer)[] }).cases.map(
      ({ type, key, data, ...expected }) => ({
        name: `${type} ${data}`,
        input: { type, key, data },
        expected,
      }),
    );
  },
  answer({ type, key, data }) {
    const secret: SecretObject = {
      ...meta('v1 Secret', { name: 's' }),
      type,
      data: { [key]: redact(Buffer.from(data).toString('base64')) },
    };
    const source = pullSecretSource(secret);
    const keyring = kubeletKeyring({ secrets: source === undefined ? [] : [source] });
    const tried = keyring.ok ? lookupForKubelet(keyring.rings, 'r.io/any') : [];
    return {
      apiserverError: refusalOf(secret),
      kubeletError: keyring.ok ? '' : keyring.goText,
      // An entry without user and password is tried, but it says nothing.
      kubeletSeesEntryForRio: tried.some(
        ({ credential }) => credential.username !== '' || reveal(credential.password) !== '',
      ),
    };
  },
  mutation: {
    file: 'runtime/core/docker-config/pull-secret.ts',
    replace: 'if (pair === undefined) return { ok: false, goText: COLON_MISSING };',
    by: 'if (pair === undefined) return { ok: true, value: { username: auth, password: redact(auth), email } };',
  },
};

/** The message of `validate`, without its own prefix and suffix. */
function refusalOf(secret: SecretObject): string {
  const problem = validateSecret(secret).find(({ code }) => code === 'ApiServerRefuses');
  return problem?.message.replace('is rejected by the API server: ', '') ?? '';
}
