import { metadataCandidates } from '../../../../runtime/rules/registry-overrides/lookup.ts';
import { splitReference } from '../../../../runtime/rules/registry-overrides/reference.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsErrorHead, readCases, textOf, toConformance } from './read.ts';

/** How the existing system calls the match: by the parts that the source has. */
function kindOf(source: string): string {
  const [first = '', ...path] = source.split('/');
  const isHost = path.length > 0 || /[.:]/.test(first) || first === 'localhost';
  return ['root', 'namespace'][isHost ? path.length : 1] ?? 'exact';
}

export const suite: ConformanceSuite<Readonly<Record<string, unknown>>> = {
  cases: (document) => readCases(document).map((one) => toConformance(one)),
  answer: (input) => {
    const [image = '', source = '', mirror = ''] = ['image', 'source', 'mirror'].map((key) =>
      textOf(input, key),
    );
    const answer = metadataCandidates(image, new Map([[source, [mirror]]]));
    if ('error' in answer) return { error: answer.error, found: false, kind: '', result: '' };
    if (answer.problems[0] !== undefined)
      return { error: answer.problems[0], found: false, kind: '', result: '' };
    const result = answer.candidates[0] ?? '';
    const found = result !== '' && !('error' in splitReference(result));
    return { error: null, found, kind: found ? kindOf(source) : '', result };
  },
  accepts: acceptsErrorHead,
  mutation: {
    file: 'runtime/rules/registry-overrides/lookup.ts',
    replace: 'const key = withoutTagAndDigest(source);',
    by: 'const key = source;',
  },
};
