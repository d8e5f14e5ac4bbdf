/**
 * One run of the operator: from the objects of a cluster to the files of its nodes, or to the refusal of all of them.
 *
 * Source of the rule: the Machine Config Operator's `syncImageConfig` and `registriesConfigIgnition`, recorded in
 * test/conformance/cases/mco-registries. One bad entry anywhere refuses everything, and nodes keep the files that they have.
 */
import type { KubeObject } from '../kubernetes/object.ts';
import type { MirrorRule } from '../mirrors/mirrors.ts';
import { editEntries } from './entries.ts';
import { confFaults, policyFaults, type RegistriesFault, releaseFault } from './faults.ts';
import { type NodeInput, readNodeInput } from './input.ts';
import { loadedRules, loadProblem } from './load.ts';
import { type DerivedLists, derivedLists, payloadRepository } from './payload.ts';
import { type PolicyDocument, policyDocument } from './policy.ts';
import { TEMPLATE_SEARCH } from './toml.ts';

export const REGISTRIES_CONF = '/etc/containers/registries.conf';
export const POLICY_JSON = '/etc/containers/policy.json';
export const SEARCH_DROP_IN = '/etc/containers/registries.conf.d/01-image-searchRegistries.conf';

/** What nodes get. */
export interface NodeFiles {
  readonly refused: false;
  /** Paths that the MachineConfig holds; nodes have the template's content of the others. */
  readonly files: readonly string[];
  /** Entries of `registries.conf`, in file order. */
  readonly rules: readonly MirrorRule[];
  /** The same as the runtime has them once they are loaded: what decides about a pull. */
  readonly loaded: readonly MirrorRule[];
  readonly policy?: PolicyDocument;
  /** Registries for short names: those of the drop-in, else those of the template. */
  readonly search: readonly string[];
  readonly lists: DerivedLists;
  /** Why the runtime does not load `registries.conf` although the operator wrote it: CRI-O goes on with what it had. */
  readonly loadError?: string;
  /** The same for the drop-in with the registries for short names. */
  readonly searchError?: string;
}

/** The operator writes nothing; nodes, new ones too, keep what was in force before. */
export interface NodeRefusal {
  readonly refused: true;
  /** The operator names the first only. Never empty. */
  readonly faults: readonly RegistriesFault[];
  readonly lists: DerivedLists;
}

export type NodeRendering = NodeFiles | NodeRefusal;

/**
 * Renders the objects of one cluster.
 *
 * @example
 * ```ts
 * import { renderNodeFiles } from './render.ts';
 * import assert from 'node:assert/strict';
 *
 * const set = (name: string, mirror: string) => ({
 *   apiVersion: 'config.openshift.io/v1', kind: 'ImageDigestMirrorSet', metadata: { name },
 *   spec: { imageDigestMirrors: [{ source: 'quay.io/team', mirrors: [mirror] }] },
 * });
 * const both = renderNodeFiles([set('one', 'b.example.com'), set('two', 'a.example.com')]);
 * assert.ok(!both.refused);
 * assert.deepEqual(both.rules[0]?.mirrors.map(({ location }) => location), ['a.example.com', 'b.example.com']);
 * assert.equal(renderNodeFiles([set('one', 'ok.example.com'), set('two', 'bad/')]).refused, true);
 * ```
 */
export function renderNodeFiles(objects: readonly KubeObject[]): NodeRendering {
  return renderInput(readNodeInput(objects));
}

/** {@link renderNodeFiles}, of what was read before. */
export function renderInput(input: NodeInput): NodeRendering {
  const { sources, release } = input;
  const payload = release === undefined ? undefined : payloadRepository(release);
  const lists = derivedLists(input);
  if (release !== undefined && payload === undefined)
    return { refused: true, faults: [releaseFault(release)], lists };
  const hasConf = sources.insecure !== undefined || lists.registries.length > 0 || input.hasSets;
  const hasPolicy = lists.policy.length > 0 || lists.allowed.length > 0;
  const invalid = hasConf ? confFaults(input, lists.registries) : [];
  const edited = editEntries({
    digest: input.digest,
    tag: input.tag,
    insecure: sources.insecure ?? [],
    blocked: lists.registries,
  });
  const faults = [
    ...invalid,
    ...edited.faults,
    ...(hasPolicy ? policyFaults(lists.policy, lists.allowed, payload) : []),
  ];
  if (faults.length > 0) return { refused: true, faults, lists };
  return files(sources.search, lists, hasConf ? edited.rules : undefined, hasPolicy);
}

function files(
  search: readonly string[] | undefined,
  lists: DerivedLists,
  rules: readonly MirrorRule[] | undefined,
  hasPolicy: boolean,
): NodeFiles {
  const loadError = loadProblem(rules ?? []);
  const searchError = loadProblem([], search);
  return {
    refused: false,
    files: [
      ...(rules === undefined ? [] : [REGISTRIES_CONF]),
      ...(hasPolicy ? [POLICY_JSON] : []),
      ...(search === undefined ? [] : [SEARCH_DROP_IN]),
    ],
    rules: rules ?? [],
    loaded: loadedRules(rules ?? []),
    ...(hasPolicy ? { policy: policyDocument(lists.policy, lists.allowed) } : {}),
    search: search ?? TEMPLATE_SEARCH,
    lists,
    ...(loadError === undefined ? {} : { loadError }),
    ...(searchError === undefined ? {} : { searchError }),
  };
}
