import { lookUpRelease, type ReleaseFound } from '../../../../runtime/registry-overrides/release-lookup.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsNamed, readCases, textOf, toConformance, toMap } from './read.ts';

type Input = Readonly<Record<string, unknown>>;

const FIELDS = ['image', 'registryOverrides', 'overrides', 'delegate', 'repoSetup', 'unavailable'];
/** For a case that names no mirrors but says that all of them fail. */
const SOME_MIRRORS = { 'quay.io/o/r': ['m1.example.com', 'm2.example.com/r'] };

/** Whether a step fails for `image`: for all (`"error"`), for those of a list, or by image. */
function fails(step: unknown, image: string): boolean {
  if (Array.isArray(step)) return step.includes(image);
  if (typeof step !== 'object' || step === null) return step === 'error';
  const own = (step as Input)[image];
  return own === 'error' || own === false;
}

/** The first image that the delegate is asked for, the mirror that answered, and whose error came back. */
async function answer(input: Input): Promise<unknown> {
  const other = Object.keys(input).find((key) => !FIELDS.includes(key));
  if (other !== undefined) throw new TypeError(`unknown field "${other}"`);
  const image = textOf(input, 'image', 'quay.io/o/r:1');
  const asked: string[] = [];
  const read = (reference: string): Promise<string> => {
    asked.push(reference);
    const setUp = reference !== image && fails(input['repoSetup'], reference);
    const down = setUp || fails(input['delegate'], reference) || fails(input['unavailable'], reference);
    return down ? Promise.reject(new Error(reference)) : Promise.resolve(reference);
  };
  const found = await lookUpRelease(
    {
      image,
      plane: 'control-plane',
      overrides: toMap<readonly string[]>(
        input['overrides'] ?? (input['delegate'] === 'error' ? SOME_MIRRORS : {}),
      ),
      registryOverrides: toMap<string>(input['registryOverrides']),
    },
    read,
  ).catch((error: unknown) => error as Error);
  return outcome(found, image, asked);
}

function outcome(found: ReleaseFound<string> | Error, image: string, asked: readonly string[]): unknown {
  const delegateImage = asked[0];
  if (found instanceof Error)
    return { delegateImage, error: found.message === image ? 'of the original image lookup' : 'of a mirror' };
  return { delegateImage, mirroredReleaseImage: found.mirroredReleaseImage ?? '', error: null };
}

export const suite: ConformanceSuite<Input> = {
  cases: (document) => readCases(document).map((one) => toConformance(one)),
  answer,
  accepts: acceptsNamed,
  mutation: {
    file: 'runtime/rules/registry-overrides/lookup.ts',
    replace: 'prefix: source,',
    by: "prefix: source === '' ? '' : 'x',",
  },
};
