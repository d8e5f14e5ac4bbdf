/**
 * Responses that the kubelet accepts, by the test's own strict decoder. Every response that we can give must be
 * one of those.
 */
import { parseRequest, responseText } from '../../../../runtime/credential-provider/plugin/request.ts';
import { kubeletTakes } from '../../../credential-provider/support/kubelet-response.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Verdict {
  readonly ok: boolean;
  /** Credentials in the response; only of one that is taken. */
  readonly keys: number | undefined;
  readonly oursAreTaken: boolean;
}

export const suite: ConformanceSuite<string, Verdict> = {
  cases(document) {
    const { cases } = document as {
      cases: readonly { id: string; stdout: string; ok: boolean; credentialKeys?: number }[];
    };
    return cases.map((one) => ({
      name: one.id,
      input: one.stdout,
      expected: { ok: one.ok, keys: one.ok ? (one.credentialKeys ?? 0) : undefined, oursAreTaken: true },
    }));
  },
  answer(stdout) {
    const taken = kubeletTakes(stdout);
    return { ok: taken !== undefined, keys: taken?.keys, oursAreTaken: oursAreTaken() };
  },
  mutation: {
    file: 'runtime/credential-provider/plugin/request.ts',
    replace: "cacheDuration: '0s'",
    by: 'cacheDuration: 0',
  },
};

function oursAreTaken(): boolean {
  const request = parseRequest('{"image":"docker.io/library/nginx"}');
  const [empty, keepsPrivate] = [false, true].map((isPrivate) =>
    kubeletTakes(responseText(request, isPrivate)),
  );
  return empty?.keys === 0 && keepsPrivate?.keys === 1;
}
