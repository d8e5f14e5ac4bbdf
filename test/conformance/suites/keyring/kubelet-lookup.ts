/** Credentials that the kubelet tries, in order. */
import { isDeepStrictEqual } from 'node:util';
import { kubeletKeyring, lookupForKubelet } from '../../../../runtime/core/docker-config/kubelet-keyring.ts';
import { type AuthSource, pullSecretSource } from '../../../../runtime/core/docker-config/pull-secret.ts';
import { parseImageReference } from '../../../../runtime/core/image-reference.ts';
import { redact, reveal } from '../../../../runtime/core/redacted.ts';
import { kubeletCredentialHash, kubeletImageError } from '../../../support/kubelet-words.ts';
import { meta } from '../../../support/meta.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Input {
  readonly image: string;
  readonly imagePullSecrets: readonly {
    readonly name: string;
    readonly uid: string;
    readonly type: string;
    readonly key: string;
    readonly data: string;
  }[];
  readonly nodeDockerConfig?: unknown;
  readonly providerAuth?: unknown;
}

interface Credential {
  readonly username: string;
  readonly password: string;
  readonly email?: string;
  readonly hash: string;
  readonly source: string;
}

interface Answer {
  readonly repo: string;
  readonly found: boolean;
  readonly error?: string;
  readonly credentials: readonly Credential[] | null;
  readonly orderUndefined?: boolean;
}

/** Expected answer; for an image that is not a valid reference, only the error. */
type Recorded = Answer | (Omit<Answer, 'repo' | 'error'> & { readonly imageError: string });

function answerOf(expected: Recorded): Answer {
  if (!('imageError' in expected)) return expected;
  const { imageError, ...rest } = expected;
  return { repo: '', error: imageError, ...rest };
}

export const suite: ConformanceSuite<Input, Answer> = {
  cases(document) {
    const { cases } = document as {
      cases: readonly (Input & { readonly name: string; readonly expected: Recorded })[];
    };
    return cases.map(({ name, expected, ...input }) => ({ name, input, expected: answerOf(expected) }));
  },
  answer: lookUp,
  accepts(actual, { orderUndefined, ...expected }) {
    const wanted = { ...expected, credentials: expected.credentials ?? [] };
    if (orderUndefined !== true) return isDeepStrictEqual(actual, wanted);
    return isDeepStrictEqual(inAnyOrder(actual), inAnyOrder(wanted));
  },
  loosens: ['orderUndefined'],
  mutation: {
    file: 'runtime/core/docker-config/kubelet-keyring.ts',
    replace: 'a.bytes < b.bytes ? 1 : -1',
    by: 'a.bytes < b.bytes ? -1 : 1',
  },
};

function inAnyOrder(answer: Answer): unknown {
  return { ...answer, credentials: (answer.credentials ?? []).map((one) => JSON.stringify(one)).sort() };
}

function lookUp(input: Input): Answer {
  const parsed = parseImageReference(input.image);
  if (!parsed.ok) {
    return { repo: '', error: kubeletImageError(input.image, parsed.goText), found: false, credentials: [] };
  }
  const repo = parsed.reference.repository;
  const secrets = input.imagePullSecrets.flatMap(
    ({ name, type, key, data }) =>
      pullSecretSource({
        ...meta('v1 Secret', { name }),
        type,
        data: { [key]: redact(Buffer.from(data).toString('base64')) },
      }) ?? [],
  );
  const node = asSource('node', input.nodeDockerConfig);
  const plugin = asSource('provider', input.providerAuth);
  const keyring = kubeletKeyring({
    secrets,
    ...(node === undefined ? {} : { node }),
    plugins: plugin === undefined ? [] : [plugin],
  });
  if (!keyring.ok) return { repo, error: keyring.goText, found: false, credentials: [] };
  const credentials = lookupForKubelet(keyring.rings, repo).map(({ source, credential }): Credential => {
    const { username, password, email } = credential;
    return {
      username,
      password: reveal(password),
      ...(email === '' ? {} : { email }),
      hash: kubeletCredentialHash(credential),
      source: source.replace('Secret/', 'secret/'),
    };
  });
  return { repo, found: credentials.length > 0, credentials };
}

function asSource(name: string, document: unknown): AuthSource | undefined {
  if (document === undefined) return undefined;
  return { name, format: 'config.json', text: redact(JSON.stringify(document)) };
}
