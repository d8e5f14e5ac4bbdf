/** Image names as the kubelet splits them. */
import { parseImageReference, pullTag } from '../../../../runtime/core/image-reference.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Answer {
  readonly Repo: string;
  readonly Tag: string;
  readonly Digest: string;
  readonly Err: boolean;
}

export const suite: ConformanceSuite<string, Answer> = {
  cases(document) {
    const { cases } = document as { cases: readonly (Answer & { readonly Image: string })[] };
    return cases.map(({ Image, ...expected }) => ({ name: Image, input: Image, expected }));
  },
  answer(image) {
    const parsed = parseImageReference(image);
    if (!parsed.ok) return { Repo: '', Tag: '', Digest: '', Err: true };
    const { repository, digest = '' } = parsed.reference;
    return { Repo: repository, Tag: pullTag(parsed.reference) ?? '', Digest: digest, Err: false };
  },
  mutation: {
    file: 'runtime/core/image-reference.ts',
    replace: '? `library/${path}` : path',
    by: '? path : path',
  },
};
