/** The exact bytes that the kubelet writes: image, token and annotations must be what it meant. */

import { reveal } from '../../../../runtime/core/redacted.ts';
import { parseRequest } from '../../../../runtime/credential-provider/plugin/request.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Meaning {
  readonly image: string;
  readonly token: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export const suite: ConformanceSuite<string, Meaning> = {
  cases(document) {
    const { cases } = document as {
      cases: readonly (Omit<Meaning, 'annotations'> & {
        id: string;
        stdin: string;
        annotations: Meaning['annotations'] | null;
      })[];
    };
    return cases.map(({ id, stdin, image, token, annotations }) => ({
      name: id,
      input: stdin,
      expected: { image, token, annotations: annotations ?? {} },
    }));
  },
  answer(stdin) {
    const { image, token, annotations } = parseRequest(stdin);
    return { image, token: token === undefined ? '' : reveal(token), annotations };
  },
  mutation: {
    file: 'runtime/credential-provider/plugin/request.ts',
    replace: "textField(fields, 'serviceAccountToken')",
    by: "textField(fields, 'token')",
  },
};
