/** Who gets the overrides: the reconciler's pass over a control plane as HyperShift has rendered it. */
import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../../../../runtime/core/kubernetes/object.ts';
import { resolveMirrors } from '../../../../runtime/core/mirrors/resolve.ts';
import {
  OVERRIDES_ENV,
  parseImageOverrides,
  parseOverridesFlag,
} from '../../../../runtime/registry-overrides/overrides.ts';
import { translateImage } from '../../../../runtime/registry-overrides/planes.ts';
import {
  deployment,
  deploymentOf,
  hostedCluster,
  mirrorSet,
  podSpec,
  run,
} from '../../../registry-overrides/run-once.ts';
import type { ConformanceSuite } from '../../suite.ts';
import {
  acceptsNamed,
  placesOf,
  readCases,
  textOf,
  toConformance,
  toMap,
  toRecord,
  wholeDigests,
} from './read.ts';

type Input = Readonly<Record<string, unknown>>;
type Mirrors = Readonly<Record<string, readonly string[]>>;

/** Sets of mirrors that upstream's own test goes through. */
const SHAPES: readonly Mirrors[] = [
  {},
  { 'quay.io/a': ['m1.example.com', 'm2.example.com'] },
  { 'quay.io/b': ['m2.example.com'], 'quay.io/a': ['m3.example.com', 'm1.example.com', 'm2.example.com'] },
];

interface Container {
  readonly args?: readonly string[];
  readonly command?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value: string }[];
}

/** The container of `component` after a pass of the reconciler, where the cluster has these mirrors. */
function containerOf(component: string, mirrors: Mirrors, rendered: Container = {}): Container {
  const before = deployment(component);
  const [own, ...others] = podSpec(before).containers;
  const spec = { template: { spec: { containers: [{ ...own, ...rendered }, ...others] } } };
  const entries = Object.entries(mirrors).map(([source, places]) => ({ source, mirrors: places }));
  const sets = entries.length === 0 ? [] : [mirrorSet('ImageDigestMirrorSet', 'all', entries)];
  const objects: readonly KubeObject[] = [hostedCluster(), ...sets, { ...before, spec }];
  const out = run(objects, { options: { mode: 'own' } });
  return podSpec(deploymentOf(out, component)).containers[0] as Container;
}

function envOf({ env = [] }: Container): Readonly<Record<string, string>> {
  return Object.fromEntries(env.map(({ name, value }) => [name, value]));
}

function envIsStable(absent: readonly string[]): unknown {
  const outcomes = SHAPES.map((shape) => {
    // The order of sources says nothing; that of the mirrors of one source is the order in which they are asked.
    const other = Object.entries(shape).toReversed();
    const one = envOf(containerOf('ignition-server', shape));
    const two = envOf(containerOf('ignition-server', Object.fromEntries(other) as Mirrors));
    return { same: isDeepStrictEqual(one, two), names: Object.keys(one) };
  });
  return {
    deterministic: outcomes.every(({ same }) => same),
    absentEnv: absent.filter((name) => outcomes.every(({ names }) => !names.includes(name))),
  };
}

/** The flag as HyperShift writes it on each component; it must still be there. */
function rendered(component: string, [source, target]: readonly [string, string]): Container {
  if (component === 'control-plane-operator') return { args: [`--registry-overrides=${source}=${target}`] };
  const words = ['--registry-overrides', `${source}=${target}`];
  return component === 'ignition-server' ? { args: words } : { command: words };
}

function wiring(component: string, input: Input): unknown {
  const [pair] = Object.entries(input['registryOverrides'] as Readonly<Record<string, string>>);
  const flags = rendered(component, pair ?? ['', '']);
  const container = containerOf(component, input['imageRegistryMirrors'] as Mirrors, flags);
  const names = Object.keys(envOf(container));
  return {
    env: envOf(container),
    args: container.args,
    command: container.command,
    emptyValue: envOf(containerOf(component, {}, flags))[OVERRIDES_ENV],
    absentEnv: ((input['absent'] as readonly string[] | undefined) ?? []).filter(
      (name) => !names.includes(name),
    ),
  };
}

const IMAGE = 'quay.io/o/r:1';

/** Images on nodes are resolved by the mirrors alone, images of the control plane also by the flag. */
function followed(plane: string): unknown {
  const { mirrors } = placesOf({ 'quay.io/o': ['m.example.com/o'] });
  const [first] = resolveMirrors(mirrors, IMAGE).candidates;
  const imageRegistryMirrors = first?.kind === 'mirror';
  if (plane === 'user') return { registryOverrides: null, imageRegistryMirrors };
  const overrides = new Map([['m.example.com', 'cache.example.com']]);
  const translated = translateImage(IMAGE, { mirrors, overrides });
  return { registryOverrides: translated === 'cache.example.com/o/r:1', imageRegistryMirrors };
}

function translated(input: Input): unknown {
  const translation = {
    mirrors: placesOf({}).mirrors,
    overrides: toMap<string>(input['overrides']),
  };
  const images = Object.entries(input['images'] as Readonly<Record<string, string>>);
  return {
    images: Object.fromEntries(images.map(([name, image]) => [name, translateImage(image, translation)])),
  };
}

function answer(input: Input): unknown {
  if (typeof input['case'] === 'string') return envIsStable((input['absent'] as readonly string[]) ?? []);
  if (typeof input['provider'] === 'string') return followed(input['provider']);
  if ('imageRegistryMirrors' in input) return wiring(textOf(input, 'component'), input);
  if ('images' in input) return translated(input);
  if ('imageContentSources' in input) return {};
  if (parseOverridesFlag(textOf(input, 'flag')) === undefined) return { error: true };
  return { imageRegistryOverrides: toRecord(parseImageOverrides(textOf(input, 'env')) ?? new Map()) };
}

export const suite: ConformanceSuite<Input> = {
  cases: (document) =>
    readCases(wholeDigests(document)).map((one) =>
      toConformance(one, {
        ...one.input,
        component: one.name,
        ...(one.expected?.['absentEnv'] === undefined ? {} : { absent: one.expected['absentEnv'] }),
      }),
    ),
  answer,
  accepts: acceptsNamed,
  mutation: {
    file: 'runtime/registry-overrides/reconciler/deployments.ts',
    replace: "['control-plane-operator', 'ignition-server']",
    by: "['ignition-server']",
  },
};
