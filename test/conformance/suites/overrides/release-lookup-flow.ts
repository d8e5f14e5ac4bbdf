import { lookUpRelease } from '../../../../runtime/registry-overrides/release-lookup.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, textOf, toConformance, toMap } from './read.ts';

type Input = Readonly<Record<string, unknown>>;

/** The image that the delegate is asked for first, the mirror that answered, or whose error came back. */
async function answer(input: Input): Promise<unknown> {
  const known = ['image', 'registryOverrides', 'overrides', 'delegate', 'unavailable'];
  const other = Object.keys(input).find((key) => !known.includes(key));
  if (other !== undefined) throw new TypeError(`unknown field "${other}"`);
  const image = textOf(input, 'image', 'quay.io/o/r:1');
  const overrides =
    input['overrides'] ??
    (input['delegate'] === 'error' ? { 'quay.io/o/r': ['m1.example.com', 'm2.example.com/r'] } : {});
  const asked: string[] = [];
  const read = async (reference: string): Promise<string> => {
    asked.push(reference);
    const down = (input['unavailable'] as readonly string[] | undefined) ?? [];
    if (input['delegate'] === 'error' || down.includes(reference)) throw new Error(reference);
    return reference;
  };
  try {
    const found = await lookUpRelease(
      {
        image,
        plane: 'control-plane',
        overrides: toMap<readonly string[]>(overrides),
        registryOverrides: toMap<string>(input['registryOverrides']),
      },
      read,
    );
    if (found.mirroredReleaseImage !== undefined) return { mirroredReleaseImage: found.mirroredReleaseImage };
    return { delegateImage: asked[0] };
  } catch (error) {
    return { error: (error as Error).message === image ? 'of the original image lookup' : 'of a mirror' };
  }
}

export const suite: ConformanceSuite<Input> = {
  cases: (document) => readCases(document).map((one) => toConformance(one)),
  answer,
  accepts: acceptsPartial,
  mutation: {
    file: 'runtime/rules/registry-overrides-lookup.ts',
    replace: 'prefix: source,',
    by: "prefix: source === '' ? '' : 'x',",
  },
};
