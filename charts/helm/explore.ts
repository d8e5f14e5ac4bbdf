/** Renders a cluster for enough combinations of settings to know what depends on what. */
import { decisionOf, kinOf, type Learned, learn, type Node, type Row, type Tree } from './learn.ts';
import { type ChartRefusal, type Combination, problemsOf, rendered } from './rendered.ts';
import { type ChartValue, isAlways, type Picked, type Setting, settled } from './settings.ts';

/** What is learned: the objects, and by its text when each problem is there. */
export interface Explored {
  readonly objects: Node;
  readonly problems: ReadonlyMap<string, Tree>;
}

/**
 * What is learned of every system, with its own settings alone, and of what they share (`''`), with all. Systems know nothing of
 * each other, so that their settings need not be tried together. First every setting is changed alone, to see what changes with it;
 * then the settings that decide something together are tried in all their combinations.
 */
export function explore(all: readonly Setting[]): ReadonlyMap<string, Explored> {
  const systems = all.flatMap(({ path }) =>
    path[0] === 'systems' && path.length === 2 ? [path[1] ?? ''] : [],
  );
  return new Map(
    ['', ...systems].map((system) => {
      const isOther = ({ path }: Setting): boolean =>
        path[0] === 'systems' && system !== '' && path[1] !== system;
      const open = all.map((setting) => !isOther(setting));
      const bases = [...backgrounds(all, open)];
      const rows = new Map<string, Row<Combination>>();
      const same = new Map<string, ChartValue>();
      const render = (given: Picked): void => {
        const key = given.join();
        if (!rows.has(key)) rows.set(key, { given, value: shared(rendered(all, given, system), same) });
      };
      const combine = (some: readonly number[], from: readonly Picked[]): void => {
        for (const given of from.flatMap((base) => products(all, some, base))) {
          render(given);
          const refused = (rows.get(given.join())?.value.problems.length ?? 0) > 0;
          if (refused) render(accepted(all, given));
        }
      };
      const sections = all.flatMap((one, index) => (isSystem(one) && open[index] === true ? [index] : []));
      singleChanges(all, open, bases).forEach(render);
      combine(sections, bases);
      rivals(all, open, bases).forEach(render);
      for (const found of system === '' ? [] : mended(all, open, bases)) {
        bases.push(found);
        singleChanges(all, open, [found]).forEach(render);
      }
      for (let found = witness(rows, bases); found !== undefined; found = witness(rows, bases)) {
        bases.push(found);
        singleChanges(all, open, [found]).forEach(render);
      }
      const known: Learned = new Map();
      for (let before = -1; before < known.size; ) {
        before = known.size;
        const together: Learned = new Map();
        study([...rows.values()], system, together);
        for (const [name, some] of together) {
          if (!known.has(name)) combine(some, some.length > 3 ? bases.slice(0, 2) : bases.toSpliced(2, 3));
          known.set(name, some);
        }
      }
      return [system, study([...rows.values()], system)];
    }),
  );
}

/** A combination with objects that none of `bases` has, of those the one that says least. */
function witness(rows: ReadonlyMap<string, Row<Combination>>, bases: readonly Picked[]): Picked | undefined {
  const covered = new Set(bases.flatMap((base) => Object.keys(rows.get(base.join())?.value.objects ?? {})));
  const [best] = [...rows.values()]
    .filter(({ value }) => Object.keys(value.objects).some((name) => !covered.has(name)))
    .map(({ given }) => ({ given, said: given.filter((sample) => sample > 0).length }))
    .sort((a, b) => a.said - b.said);
  return best?.given;
}

/** What is refused alone, with what it needs, and little else. */
function mended(
  all: readonly Setting[],
  open: readonly boolean[],
  [base]: readonly Picked[],
): readonly Picked[] {
  const refused = singleChanges(all, open, base === undefined ? [] : [base]).filter(
    (given) => problemsOf(all, given).length > 0,
  );
  const mends = new Map(refused.map((given) => accepted(all, given)).map((given) => [given.join(), given]));
  return [...mends.values()].filter((given) => given.join() !== base?.join());
}

/** What no base says because something else excludes it: said, and that other thing not. */
function rivals(
  all: readonly Setting[],
  open: readonly boolean[],
  bases: readonly Picked[],
): readonly Picked[] {
  const much = bases.slice(2);
  return all.flatMap((_, index) => {
    if (open[index] !== true || much.some((base) => base[index] !== 0)) return [];
    return much.flatMap((base) => {
      const without = base.flatMap((sample, other) => (sample === 0 || other === index ? [] : [other]));
      const found = without.find((other) => {
        const given = settled(all, base.with(index, 1).with(other, 0));
        return given[index] === 1 && problemsOf(all, given).length === 0;
      });
      return found === undefined ? [] : [settled(all, base.with(index, 1).with(found, 0))];
    });
  });
}

/** Everything that is there when all systems are, by their defaults. */
export function allSystems(all: readonly Setting[]): Picked {
  return backgrounds(
    all,
    all.map(() => true),
  )[0];
}

/** Objects that are the same by their text become one: most are, in most combinations. */
function shared({ objects, problems }: Combination, same: Map<string, ChartValue>): Combination {
  const entries = Object.entries(objects).map(([name, object]): [string, ChartValue] => {
    const text = JSON.stringify(object);
    const one = same.get(text) ?? object;
    same.set(text, one);
    return [name, one];
  });
  return { objects: Object.fromEntries(entries), problems };
}

/** Every problem shows where all settings are open. */
function study(rows: readonly Row<Combination>[], system: string, learned?: Learned): Explored {
  const good = rows.filter(({ value }) => value.problems.length === 0);
  const told = rows.map(({ given, value }) => ({ given, texts: new Set(value.problems.map(described)) }));
  const own = system === '' ? '' : `systems.${system}`;
  const texts = new Set(told.flatMap((row) => [...row.texts].filter((text) => text.startsWith(own))));
  const kin = kinOf(rows);
  return {
    objects: learn(
      good.map(({ given, value }) => ({ given, value: value.objects })),
      learned,
      kin,
    ),
    problems: new Map(
      [...texts].map((text) => [
        text,
        decisionOf(
          told.map(({ given, texts: there }) => ({ given, value: `${there.has(text)}` })),
          learned,
          kin,
        ),
      ]),
    ),
  };
}

/** Every combination of some settings, the others as they are in `base`. */
function products(all: readonly Setting[], some: readonly number[], base: Picked): readonly Picked[] {
  const combined = some.reduce<readonly Picked[]>(
    (found, index) => {
      const setting = all[index];
      const samples = setting?.samples ?? [];
      const choices = Array.from({ length: samples.length + 1 }, (_, sample) => sample).slice(
        setting !== undefined && isAlways(setting) ? 1 : 0,
      );
      return found.flatMap((given) => choices.map((sample) => given.with(index, sample)));
    },
    [base],
  );
  return combined.map((given) => settled(all, given));
}

const WATCHED_MANAGER: ReadonlySet<string> = new Set(['kind', 'discovery', 'monitoring', 'dashboards']);

/** Some combinations that differ much: stand-alone and management cluster with little said, and with much. */
function backgrounds(
  all: readonly Setting[],
  open: readonly boolean[],
): readonly [Picked, Picked, Picked, Picked, Picked] {
  const base = (choose: (setting: Setting) => number): Picked => {
    const given = all.map((setting, index) => {
      const least = isAlways(setting) ? 1 : 0;
      return open[index] === true
        ? Math.max(least, Math.min(setting.samples.length, choose(setting)))
        : least;
    });
    return accepted(all, given);
  };
  const isWatchedManager = ({ path: [name = ''] }: Setting): boolean => WATCHED_MANAGER.has(name);
  // Of switches "on" comes first, of what else can be chosen the last is management.
  const manager = ({ samples }: Setting): number => (samples[0] === true ? 1 : samples.length);
  return [
    base((one) => (isSystem(one) ? 1 : 0)),
    base((one) => (isWatchedManager(one) ? manager(one) : isSystem(one) ? 1 : 0)),
    base(() => 1),
    base(manager),
    base(({ path: [name = ''], samples }) => (name === 'kind' || name === 'discovery' ? 0 : samples.length)),
  ];
}

function isSystem({ type, path }: Setting): boolean {
  return type === 'section' && path.length === 2;
}

/** What is refused is taken back, or said where it is missing, until nothing is refused. */
function accepted(all: readonly Setting[], given: Picked, tries: number = all.length): Picked {
  const problems = problemsOf(all, settled(all, given));
  const at = all.findIndex(({ path }) => problems.some((problem) => problem.path === path.join('.')));
  if (at === -1 || tries === 0) return settled(all, given);
  return accepted(all, given.with(at, given[at] === 0 ? 1 : 0), tries - 1);
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
  const required = all.map(isAlways);
  const valid = changed.filter((given) => given.every((sample, index) => sample > 0 || !required[index]));
  return valid.map((given) => settled(all, given));
}

function described({ path, text }: ChartRefusal): string {
  return `${path}: ${text}`;
}
