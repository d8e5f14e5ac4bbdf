/** Reads the case files of this folder, and answers a whole run of the operator as `mirrors`, `explain` and `validate` do. */
import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../../../../runtime/core/kubernetes/object.ts';
import { type Candidate, compileMirrors, resolveMirrors } from '../../../../runtime/core/mirrors/resolve.ts';
import { schemaFaults } from '../../../../runtime/registry-overrides/machine-config/admission.ts';
import {
  headText,
  type NodeFiles,
  type NodeRendering,
  REGISTRIES_CONF,
  registriesText,
  renderNodeFiles,
  SEARCH_DROP_IN,
} from '../../../../runtime/registry-overrides/machine-config/render.ts';
import { type ConformanceCase, type ConformanceSuite, type Mutation, rows } from '../../suite.ts';

type Fields = Readonly<Record<string, unknown>>;

export interface RunInput {
  readonly idms?: readonly Fields[];
  readonly itms?: readonly Fields[];
  readonly icsp?: readonly Fields[];
  readonly imageConfig?: Fields;
  readonly releaseImage?: string;
}

export interface Expected extends Fields {
  readonly error?: string;
  readonly errorAnyOf?: readonly string[];
  readonly pulls?: readonly { readonly image: string }[];
}

export type RunSuite = ConformanceSuite<RunInput & { readonly asked: Expected }>;

/** `{name, input, expected}` of every case; what is asked about (images, texts) goes with the input. */
function readRuns(document: unknown): readonly ConformanceCase<RunInput & { asked: Expected }>[] {
  return rows<RunInput, Expected>(document).map((one) => ({
    ...one,
    input: { ...one.input, asked: one.expected },
  }));
}

const DEFAULT_RELEASE =
  'quay.io/openshift-release-dev/ocp-release@sha256:4207ba569ff014931f1b5d125fe3751936a768e119546683c899eb09f3cdceb0';

/** The objects of a cluster, as an API server has them. */
export function objectsOf(input: RunInput): readonly KubeObject[] {
  const config = 'config.openshift.io/v1';
  const all = (kind: string, apiVersion: string, list: readonly Fields[] = []): unknown[] =>
    list.map((object) => ({ ...object, kind, apiVersion }));
  return [
    ...all('ImageDigestMirrorSet', config, input.idms),
    ...all('ImageTagMirrorSet', config, input.itms),
    ...all('ImageContentSourcePolicy', 'operator.openshift.io/v1alpha1', input.icsp),
    { kind: 'Image', apiVersion: config, metadata: { name: 'cluster' }, spec: input.imageConfig ?? {} },
    {
      kind: 'ClusterVersion',
      apiVersion: config,
      metadata: { name: 'version' },
      status: { desired: { image: input.releaseImage ?? DEFAULT_RELEASE } },
    },
  ] as readonly KubeObject[];
}

function answer(input: RunInput & { asked: Expected }): Fields {
  const objects = objectsOf(input);
  const rendering = renderNodeFiles(objects);
  return {
    admitted: schemaFaults(objects).length === 0,
    ...listsOf(rendering, input.asked),
    ...(rendering.refused
      ? { error: rendering.faults[0]?.text, files: [], registries: [] }
      : filesOf(rendering, input.asked)),
  };
}

/** Only blocked and allowed lists are recorded; what was skipped matters by its head. */
function listsOf({ lists }: NodeRendering, asked: Expected): Fields {
  return asked['lists'] === undefined ? {} : { lists };
}

function filesOf(rendering: NodeFiles, asked: Expected): Fields {
  const written = rendering.files.includes(REGISTRIES_CONF);
  const search = rendering.files.includes(SEARCH_DROP_IN);
  const toml = `${written ? registriesText(rendering.rules) : ''}${search ? `\n# search drop-in\n${headText(rendering.search)}` : ''}`;
  return {
    files: rendering.files,
    registries: rendering.rules.map(({ prefix, location, blocked, insecure, mirrors }) => ({
      prefix: prefix.startsWith('*.') ? prefix : '',
      location,
      blocked,
      insecure,
      mirrors: mirrors.map((mirror) => ({
        location: mirror.location,
        insecure: mirror.insecure === true,
        pullFromMirror: mirror.pullFrom,
      })),
    })),
    ...(asked['toml'] === undefined ? {} : { toml }),
    ...(rendering.policy === undefined ? {} : { policy: rendering.policy }),
    ...(search ? { search: rendering.search } : {}),
    ...(rendering.loadError === undefined ? {} : { loadError: rendering.loadError }),
    ...(asked.pulls === undefined ? {} : { pulls: asked.pulls.map(({ image }) => pullOf(rendering, image)) }),
  };
}

function pullOf({ loaded }: NodeFiles, image: string): Fields {
  const { rule, candidates, skipped, refusal } = resolveMirrors(compileMirrors(loaded), image);
  const blocked = skipped.filter(({ reason }) => reason === 'Blocked');
  // Both lists keep the order of the entry's places, of which each holds some.
  const locations = [
    ...(rule?.mirrors ?? []).map(({ location }) => location),
    candidates.at(-1)?.location ?? '',
  ];
  const sources = [...locations, ...blocked.map(({ location }) => location)].flatMap((location) => {
    const list = [candidates, blocked].find(([next]) => next?.location === location) as
      | Candidate[]
      | undefined;
    const place = list?.shift();
    if (place === undefined) return [];
    return [{ reference: place.reference, insecure: place.insecure === true, blocked: list === blocked }];
  });
  return {
    image,
    rule: rule?.prefix ?? '',
    sources: refusal === undefined ? sources : [],
    ...(refusal === undefined ? {} : { error: refusal }),
  };
}

/** Prefix of the errors of containers/image about the file. */
const LOADING = `loading registries configuration "${REGISTRIES_CONF}"`;

function isOneOf(texts: readonly string[], text: string | undefined): boolean {
  return text !== undefined && texts.includes(text);
}

/** Texts with the name of a temporary file or after Go's parsers count by their heads. */
function accepts(actual: unknown, expected: unknown): boolean {
  const { error, lists, loadError, ...rest } = actual as Expected;
  const { error: wanted, errorAnyOf, lists: wantedLists, loadError: load, ...others } = expected as Expected;
  return (
    (errorAnyOf === undefined
      ? error === wanted
      : isOneOf(errorAnyOf, error) && isOneOf(errorAnyOf, wanted)) &&
    load === (loadError === undefined ? undefined : `${LOADING}: ${loadError as string}`) &&
    sameLists(lists, wantedLists) &&
    isDeepStrictEqual(rest, others)
  );
}

function sameLists(actual: unknown, expected: unknown): boolean {
  if (expected === undefined) return true;
  const { skipped, ...lists } = actual as Fields;
  const { skipped: wanted, ...others } = expected as Fields;
  const head = (text: unknown): unknown =>
    typeof text === 'string' && text.startsWith('loading registries configuration') ? 'loading' : text;
  const same = head(wanted) === 'loading' ? typeof skipped === 'string' : skipped === wanted;
  return same && isDeepStrictEqual(lists, others);
}

/** A suite of whole runs, with the edit that must make it fail. */
export function runSuite(mutation: Mutation): RunSuite {
  return { cases: readRuns, answer, accepts, loosens: ['errorAnyOf'], mutation };
}
