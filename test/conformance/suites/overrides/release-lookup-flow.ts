import { isDeepStrictEqual } from 'node:util';
import { replaceRegistry } from '../../../../runtime/registry-overrides/overrides.ts';
import {
  type FoundRelease,
  lookUpRelease,
  type PlaceFailure,
  type ReleasePlaces,
  translateImage,
} from '../../../../runtime/registry-overrides/planes.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsNamed, placesOf, readCases, textOf, toConformance, wholeDigests } from './read.ts';

type Input = Readonly<Record<string, unknown>>;
type Tags = Readonly<Record<string, string>>;

const FIELDS = ['image', 'registryOverrides', 'overrides', 'delegate', 'repoSetup', 'unavailable', 'tags'];
/** For a case that names no mirrors but says that all of them fail. */
const SOME_MIRRORS = { 'quay.io/o/r': ['m1.example.com/r', 'm2.example.com/r'] };
const SET_UP = 'cannot set up the repository';

/** Why a step fails for `image`: `"error"` fails for all, a list for those in it, a map by image; undefined when it does not. */
function failureOf(step: unknown, image: string): string | undefined {
  if (typeof step === 'string') return step.startsWith('error') ? step : undefined;
  if (Array.isArray(step)) return step.includes(image) ? 'error' : undefined;
  const own = (step as Input | null | undefined)?.[image];
  return own === 'error' || own === false ? 'error' : undefined;
}

/** Everything that a case may ask about one look-up. */
async function answer(input: Input): Promise<unknown> {
  const other = Object.keys(input).find((key) => !FIELDS.includes(key));
  if (other !== undefined) throw new TypeError(`unknown field "${other}"`);
  const image = textOf(input, 'image', `quay.io/o/r@sha256:${'a'.repeat(64)}`);
  const mirrors = input['overrides'] ?? (input['delegate'] === 'error' ? SOME_MIRRORS : {});
  const places = placesOf(mirrors, input['registryOverrides']);
  const tags = (input['tags'] ?? {}) as Tags;
  const lookedUp: string[] = [];
  const read = (reference: string): Promise<Tags> => {
    lookedUp.push(reference);
    const setUp = reference === image ? undefined : failureOf(input['repoSetup'], reference);
    const failure = failureOf(input['delegate'], reference) ?? failureOf(input['unavailable'], reference);
    if (setUp === undefined && failure === undefined) return Promise.resolve(tags);
    return Promise.reject(new Error(setUp === undefined ? failure : SET_UP));
  };
  const found = await lookUpRelease(image, places, read).catch((error: unknown) => error as Error);
  const seen = { delegateImage: lookedUp[0], lookedUp };
  if (found instanceof Error) return { ...seen, ...failed(found, image) };
  return { ...seen, ...outcome(found, { image, places, tags }) };
}

function failed({ message }: Error, image: string): object {
  const last = message.slice(message.lastIndexOf('; ') + 2);
  return {
    error: last.startsWith(`${image}: `) ? 'of the original image lookup' : 'of a mirror',
    errorContains: message,
  };
}

function outcome(
  found: FoundRelease<Tags>,
  { image, places, tags }: { readonly image: string; readonly places: ReleasePlaces; readonly tags: Tags },
): object {
  const itself = found.from === replaceRegistry(image, places.overrides);
  return {
    mirroredReleaseImage: itself ? '' : found.from,
    error: null,
    logs: found.failures.map(inTheirWords),
    canonicalKept: isDeepStrictEqual(found.release, tags),
    tags: Object.fromEntries(Object.entries(tags).map(([name, tag]) => [name, translateImage(tag, places)])),
  };
}

function inTheirWords({ message }: PlaceFailure): string {
  return message === SET_UP
    ? 'WARNING: The current mirrors image is unavailable, continue Scanning multiple mirrors'
    : 'Failed to look up release image using registry mirror';
}

/** Upstream's own line counts, not how often it is said. */
function accepts(actual: unknown, expected: unknown): boolean {
  const got = actual as Input;
  const want = expected as Input;
  const logs = [...new Set(got['logs'] as readonly string[] | undefined)];
  const contained =
    (got['errorContains'] as string | undefined)?.includes(String(want['errorContains'])) === true;
  const error = contained ? { errorContains: want['errorContains'] } : {};
  return acceptsNamed({ ...got, logs, ...error }, expected);
}

export const suite: ConformanceSuite<Input> = {
  cases: (document) => readCases(wholeDigests(document)).map((one) => toConformance(one)),
  answer,
  accepts,
  mutation: {
    file: 'runtime/registry-overrides/planes.ts',
    replace: 'const from = replaceRegistry(candidate.reference, overrides);',
    by: 'const from = candidate.reference;',
  },
};
