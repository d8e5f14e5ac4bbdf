import type { ConformanceSuite } from '../../suite.ts';
import { acceptsErrorHead, firstPlace, placesOf, readCases, textOf, toConformance } from './read.ts';

/** Name of the match in the existing system, by the parts of the source. */
function kindOf(source: string): string {
  const [first = '', ...path] = source.split('/');
  const isHost = path.length > 0 || /[.:]/.test(first) || first === 'localhost';
  return ['root', 'namespace'][isHost ? path.length : 1] ?? 'exact';
}

export const suite: ConformanceSuite<Readonly<Record<string, unknown>>> = {
  cases: (document) => readCases(document).map((one) => toConformance(one)),
  answer: async (input) => {
    const [image = '', source = '', mirror = ''] = ['image', 'source', 'mirror'].map((key) =>
      textOf(input, key),
    );
    const result = await firstPlace(image, placesOf({ [source]: [mirror] }));
    const found = result !== image;
    return { error: null, found, kind: found ? kindOf(source) : '', result };
  },
  accepts: acceptsErrorHead,
  mutation: {
    file: 'runtime/registry-overrides/planes.ts',
    replace: 'of resolveMirrors(mirrors, image).candidates)',
    by: 'of resolveMirrors(mirrors, image).candidates.toReversed())',
  },
};
