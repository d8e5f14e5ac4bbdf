/**
 * What the nodes of a cluster follow: what the operator renders from its objects, or what they keep because it refuses to.
 *
 * Source of the rule: the Machine Config Operator (render.ts). The file in force is read from the MachineConfigs
 * `99-<pool>-generated-registries`, or is given as the file of a node.
 */
import { PullwrightError } from '../../core/errors.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { parseRegistriesConf, type Registry } from '../../core/mirrors/registries-conf.ts';
import {
  type MirrorIndex,
  type MirrorRule,
  type Resolution,
  resolveMirrors,
  withoutTagAndDigest,
} from '../../core/mirrors/resolve.ts';
import { someOf } from '../../core/text.ts';
import { collectMirrors, type MirrorProblem, problem, type RegistriesFault } from '../mirror-sets/collect.ts';
import { admit } from './admission.ts';
import {
  ignitionText,
  type NodeRendering,
  type PolicyDocument,
  REGISTRIES_CONF,
  renderNodeFiles,
} from './render.ts';

/** A `registries.conf` that nodes have. */
export interface ConfInForce {
  /** Where it was read, for a person. */
  readonly from: string;
  readonly rules: readonly Registry[];
}

export interface NodeMirrors {
  readonly rendering: NodeRendering;
  /**
   * `rendered`: nodes follow the objects. `kept`: they follow a file that was read. `unknown`: the API server or the operator refuses
   * objects, or the runtime the file, and what nodes keep is not known; `rules` then are what the objects say as far as they can be
   * used.
   */
  readonly state: 'rendered' | 'kept' | 'unknown';
  readonly rules: readonly MirrorRule[];
  /** One sentence: by what nodes go, and why. */
  readonly summary: string;
  readonly problems: readonly MirrorProblem[];
}

/** What `policy.json` of the nodes says; undefined where the operator renders none. */
export function policyOf({ rendering }: NodeMirrors): PolicyDocument | undefined {
  return rendering.refused ? undefined : rendering.policy;
}

/**
 * Resolves as nodes do: their policy decides on the name that was requested, whichever pull source would serve it.
 *
 * Source of the rule: containers/image `PolicyContext.requirementsForImageRef` with `DockerReferenceIdentity` and
 * `DockerReferenceNamespaces`; CRI-O asks it for the reference of the pull, not for that of a mirror.
 */
export function resolveOnNode(
  index: MirrorIndex,
  image: string,
  policy: PolicyDocument | undefined,
): Resolution {
  const resolution = resolveMirrors(index, image);
  if (policy === undefined) return resolution;
  const scopes = policy.transports['docker'] ?? {};
  const scope = scopesOf(resolution.image).find((one) => Object.hasOwn(scopes, one));
  const [requirement] = (scope === undefined ? undefined : scopes[scope]) ?? policy.default;
  if (requirement?.type !== 'reject') return resolution;
  const says = scope === undefined ? 'do not allow it' : `block "${scope}"`;
  const message = `rejected by the policy of the nodes: registrySources of Image/cluster ${says}, and they decide on the name that is requested, whichever mirror has it`;
  const rejected = resolution.candidates
    .toReversed()
    .map((one) => ({ ...one, reason: 'PolicyRejected' as const, message }));
  return { ...resolution, candidates: [], skipped: [...rejected, ...resolution.skipped] };
}

/** The scopes of a policy that cover an image, the first that is there counts. */
function scopesOf(image: string): readonly string[] {
  const parts = withoutTagAndDigest(image).split('/');
  const [host = ''] = (parts[0] ?? '').split(':', 1);
  const labels = host.split('.');
  return [
    image,
    ...parts.map((_part, at) => parts.slice(0, parts.length - at).join('/')),
    ...labels.slice(1).map((_label, at) => `*.${labels.slice(at + 1).join('.')}`),
  ];
}

export const MACHINE_CONFIG = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
} as const;
const GENERATED = /^99-(.+)-generated-registries$/;

/**
 * @param given files of nodes, which go before MachineConfigs
 */
export function nodeMirrors(objects: readonly KubeObject[], given?: ConfInForce): NodeMirrors {
  const admitted = admit(objects);
  const rendering = renderNodeFiles(admitted.objects);
  const { found, problems } = confsIn(objects);
  const inForce = given ?? found[0];
  const all = [...admitted.problems, ...faultProblems(rendering), ...problems];
  if (admitted.refused.length === 0 && !rendering.refused && rendering.loadError === undefined) {
    const drift = driftOf(rendering.loaded, inForce);
    if (given !== undefined) return { ...keptBy(given), rendering, problems: [...all, ...drift] };
    const summary = 'nodes follow what the Machine Config Operator renders from these objects';
    return { rendering, state: 'rendered', rules: rendering.loaded, summary, problems: [...all, ...drift] };
  }
  const why = whyKept(admitted.refused, rendering);
  if (inForce !== undefined) return { ...keptBy(inForce, why), rendering, problems: all };
  const isLoaded = !rendering.refused && rendering.loadError === undefined;
  const summary = isLoaded
    ? `${why}: what is shown is what the other objects give`
    : `${why}: nodes keep the file that they have, which is not known here; what is shown is what these objects would give`;
  const rules = isLoaded ? rendering.loaded : collectMirrors(admitted.objects).rules;
  return { rendering, state: 'unknown', rules, summary, problems: all };
}

function whyKept(refused: readonly string[], rendering: NodeRendering): string {
  const reasons = [
    ...(refused.length === 0
      ? []
      : [`the API server refuses ${someOf(refused, 3)}, so that what it says does not come into force`]),
    ...(rendering.refused ? [refusalOf(rendering.faults)] : []),
    ...(rendering.refused || rendering.loadError === undefined
      ? []
      : [`CRI-O does not load what is rendered (${rendering.loadError})`]),
  ];
  return reasons.join('; ');
}

function keptBy(conf: ConfInForce, why?: string): Pick<NodeMirrors, 'state' | 'rules' | 'summary'> {
  const summary = why === undefined ? `nodes follow ${conf.from}` : `${why}: nodes keep ${conf.from}`;
  return { state: 'kept', rules: conf.rules, summary };
}

function refusalOf(faults: readonly RegistriesFault[]): string {
  const names = [...new Set(faults.map(({ origin }) => `${origin.kind}/${origin.name}`))];
  return `the Machine Config Operator refuses all mirror sets because of ${someOf(names, 3)}`;
}

/** Why the operator or the runtime refuses, as problems of the objects. */
export function faultProblems(rendering: NodeRendering): readonly MirrorProblem[] {
  if (rendering.refused)
    return rendering.faults.map(({ code, origin, message }) =>
      problem(
        code,
        origin,
        `${message}; until then the Machine Config Operator refuses every mirror set of the cluster, and nodes keep what they have`,
      ),
    );
  const origin = { kind: 'Image', name: 'cluster', path: 'spec.registrySources' };
  const { lists, loadError, searchError } = rendering;
  const said: readonly (readonly [string, 'error' | 'warning', string | undefined])[] = [
    ['NotLoadable', 'error', loadError && `CRI-O does not load the rendered file: ${loadError}`],
    [
      'SearchNotLoadable',
      'error',
      searchError && `CRI-O does not load the search registries: ${searchError}`,
    ],
    ['NotBlocked', 'warning', lists.skipped && `is not followed: ${lists.skipped}`],
    ['AllowsReleaseOnly', 'error', allowsReleaseOnly(rendering)],
  ];
  return said.flatMap(([code, severity, text]) =>
    text === undefined ? [] : [problem(code, origin, text, severity)],
  );
}

/** Blocking exactly the repository of the release turns the policy around. */
function allowsReleaseOnly({ lists, policy }: Exclude<NodeRendering, { refused: true }>): string | undefined {
  if (policy?.default[0]?.type !== 'reject' || lists.registries.length === 0) return undefined;
  const [only] = lists.allowed;
  return `blocks the repository of the release, and the policy of nodes then allows "${only}" alone and refuses all other images: block its registry or another path, not that repository`;
}

/** The generated MachineConfigs, worker first: custom pools have its files too. */
function confsIn(objects: readonly KubeObject[]): {
  readonly found: readonly ConfInForce[];
  readonly problems: readonly MirrorProblem[];
} {
  const problems: MirrorProblem[] = [];
  const found = objects
    .filter(({ kind, metadata }) => kind === MACHINE_CONFIG.kind && GENERATED.test(metadata.name))
    .sort((a, b) => Number(isWorker(b)) - Number(isWorker(a)))
    .flatMap((object): ConfInForce[] => {
      const from = `MachineConfig/${object.metadata.name}`;
      const text = ignitionText(object, REGISTRIES_CONF);
      if (text === undefined) return [];
      try {
        return [{ from, rules: parseRegistriesConf(text) }];
      } catch (error) {
        if (!(error instanceof PullwrightError)) throw error;
        const origin = { kind: object.kind, name: object.metadata.name, path: REGISTRIES_CONF };
        const message = `${from} ${REGISTRIES_CONF} cannot be loaded by the runtime: ${error.message}`;
        problems.push({ severity: 'error', code: 'NotLoadable', origin, message });
        return [];
      }
    });
  return { found, problems };
}

function isWorker({ metadata }: KubeObject): boolean {
  return metadata.name === '99-worker-generated-registries';
}

/** The first entry in which a file in force is not what the objects give. */
function driftOf(wanted: readonly MirrorRule[], inForce: ConfInForce | undefined): readonly MirrorProblem[] {
  if (inForce === undefined) return [];
  const present = new Map(inForce.rules.map((rule) => [rule.prefix, meaningOf(rule)]));
  const other = wanted.find((rule) => present.get(rule.prefix) !== meaningOf(rule));
  const sources = new Set(wanted.map(({ prefix }) => prefix));
  const more = inForce.rules.find(({ prefix }) => !sources.has(prefix));
  const about =
    other === undefined
      ? more && `has an entry "${more.prefix}" that no object asks for`
      : `${present.has(other.prefix) ? 'has another entry' : 'has no entry'} for "${other.prefix}" than the objects give`;
  if (about === undefined) return [];
  const [kind = '', name = ''] = inForce.from.split('/', 2);
  const message = `${inForce.from} ${about}: it is older than the objects, or was changed by hand`;
  return [
    { severity: 'warning', code: 'NotRolledOut', origin: { kind, name, path: REGISTRIES_CONF }, message },
  ];
}

function meaningOf({ location, blocked, insecure, mirrors }: Registry): string {
  const places = mirrors.map((mirror) => [mirror.location, mirror.pullFrom, mirror.insecure === true]);
  return JSON.stringify([location, blocked, insecure, places]);
}
