/** Renders a cluster for enough combinations of settings to know what depends on what. */
import { parseYaml } from '../../runtime/kube/yaml.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { commonGroups, systemGroups } from '../app.ts';
import { readFleet } from '../fleet.ts';
import { FleetError } from '../fleet-problems.ts';
import { decisionOf, type Learned, learn, type Node, type Row, type Tree } from './learn.ts';
import { withMarks, withoutDigest } from './marks.ts';
import { type ChartValue, clusterOf, type Picked, type Setting, settled } from './settings.ts';

/** What was rendered for one combination: objects by name, or why it is refused. */
interface Outcome {
  readonly objects: Readonly<Record<string, ChartValue>>;
  readonly problem: string;
}

/** On every Namespace, and only there. */
const KEEP = { 'helm.sh/resource-policy': 'keep' } as const;

/** Name of the one cluster; nothing that is rendered speaks of it. */
const CLUSTER = 'chart';

/**
 * What is learned of every system, with its own settings alone, and of what they share (`''`), with all. Systems know nothing of
 * each other, so that their settings need not be tried together. First every setting is changed alone, to see what changes with it;
 * then the settings that decide something together are tried in all their combinations.
 */
export function explore(
  all: readonly Setting[],
): ReadonlyMap<string, { readonly objects: Node; readonly problem: Tree }> {
  const systems = all.flatMap(({ path }) =>
    path[0] === 'systems' && path.length === 2 ? [path[1] ?? ''] : [],
  );
  return new Map(
    ['', ...systems].map((system) => {
      const isOther = ({ path }: Setting): boolean =>
        path[0] === 'systems' && system !== '' && path[1] !== system;
      const open = all.map((setting) => !isOther(setting));
      const bases = backgrounds(all, open);
      const rows = new Map<string, Row<Outcome>>();
      const render = (given: Picked): void => {
        const key = given.join();
        if (!rows.has(key)) rows.set(key, { given, value: outcome(all, given, system) });
      };
      singleChanges(all, open, bases).forEach(render);
      const sections = all.flatMap(({ type }, index) =>
        type === 'section' && open[index] === true ? [index] : [],
      );
      products(all, sections, bases[0] ?? []).forEach(render);
      const known: Learned = new Map();
      for (let before = -1; before < known.size; ) {
        before = known.size;
        const together: Learned = new Map();
        study([...rows.values()], together);
        for (const [name, some] of together) {
          if (!known.has(name)) products(all, some, bases[0] ?? []).forEach(render);
          known.set(name, some);
        }
      }
      return [system, study([...rows.values()])];
    }),
  );
}

function study(
  rows: readonly Row<Outcome>[],
  learned?: Learned,
): { readonly objects: Node; readonly problem: Tree } {
  const good = rows.filter(({ value }) => value.problem === '');
  return {
    objects: learn(
      good.map(({ given, value }) => ({ given, value: value.objects })),
      learned,
    ),
    problem: decisionOf(
      rows.map(({ given, value }) => ({ given, value: value.problem })),
      learned,
    ),
  };
}

/** Every combination of some settings, the others as they are in `base`. */
function products(all: readonly Setting[], some: readonly number[], base: Picked): readonly Picked[] {
  const combined = some.reduce<readonly Picked[]>(
    (found, index) => {
      const { samples = [], required = false } = all[index] ?? {};
      const choices = Array.from({ length: samples.length + 1 }, (_, sample) => sample).slice(
        required ? 1 : 0,
      );
      return found.flatMap((given) => choices.map((sample) => given.with(index, sample)));
    },
    [base],
  );
  return combined.map((given) => settled(all, given));
}

/** Some combinations that differ much. */
function backgrounds(all: readonly Setting[], open: readonly boolean[]): readonly Picked[] {
  const base = (choose: (setting: Setting, index: number) => number): Picked =>
    all.map((setting, index) => {
      const least = setting.required ? 1 : 0;
      return open[index] === true
        ? Math.max(least, Math.min(setting.samples.length, choose(setting, index)))
        : least;
    });
  return [
    base(({ type, path }) => (type === 'section' && path.length === 2 ? 1 : 0)),
    base(() => 1),
    base(({ samples }) => samples.length),
  ];
}

/** Each of them, and with every single change. */
function singleChanges(
  all: readonly Setting[],
  open: readonly boolean[],
  bases: readonly Picked[],
): readonly Picked[] {
  const changed = bases.flatMap((given) => [
    given,
    ...all.flatMap((setting, index) =>
      open[index] === true
        ? Array.from({ length: setting.samples.length + 1 }, (_, sample) => given.with(index, sample))
        : [],
    ),
  ]);
  const valid = changed.filter((given) =>
    given.every((sample, index) => sample > 0 || all[index]?.required !== true),
  );
  return valid.map((given) => settled(all, given));
}

function outcome(all: readonly Setting[], given: Picked, system: string): Outcome {
  const { image, ...cluster } = clusterOf(all, given);
  try {
    const fleet = readFleet({ image, clusters: [{ name: CLUSTER, ...cluster }] });
    const groups = fleet.clusters.flatMap((one) => (system === '' ? commonGroups : systemGroups)(fleet, one));
    const objects = groups
      .flatMap((group) => group.objects)
      .filter(({ kind }) => kind !== 'CustomResourceDefinition');
    return { objects: byName(objects, all, given), problem: '' };
  } catch (error) {
    if (!(error instanceof FleetError)) throw error;
    return { objects: {}, problem: error.problems.map(describe).join('; ') };
  }
}

function describe({ path, text }: FleetError['problems'][number]): string {
  return `${path.slice(2).join('.')}: ${text}`;
}

function byName(objects: readonly KubeObject[], all: readonly Setting[], given: Picked): Outcome['objects'] {
  const plain = JSON.parse(JSON.stringify(objects.map(kept))) as readonly ChartValue[];
  const text = objects.flatMap((object) => configText(object)).at(0);
  const whole = withMarks(
    withoutDigest(plain, text, (one) => parseYaml(one) as ChartValue),
    all,
    given,
  ) as readonly ChartValue[];
  return Object.fromEntries(whole.map((object) => [nameOf(object as unknown as KubeObject), object]));
}

/** A namespace holds what others made: Helm must not delete it. */
function kept(object: KubeObject): KubeObject {
  if (object.kind !== 'Namespace') return object;
  const { annotations } = object.metadata;
  return { ...object, metadata: { ...object.metadata, annotations: { ...annotations, ...KEEP } } };
}

function configText({ kind, data }: KubeObject): readonly string[] {
  const text = kind === 'ConfigMap' ? (data as Readonly<Record<string, string>>)['config.yaml'] : undefined;
  return text === undefined ? [] : [text];
}

/** Kind, namespace and name, with marks. */
function nameOf({ kind, metadata }: KubeObject): string {
  return `${kind}/${metadata.namespace ?? ''}/${metadata.name}`;
}
