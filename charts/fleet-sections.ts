/**
 * Sections of a cluster: what it says itself, over what the defaults say.
 *
 * Maps are merged, lists and single values replaced; `source` is one thing or another, so that it is never mixed from both.
 */
import { isRecord } from '../runtime/rules/record.ts';
import { check, type FieldPath, type FleetProblem, suggestion } from './fleet-problems.ts';
import type { ClusterTop } from './fleet-schema.ts';
import type { ChartSystem, ClusterContext } from './shared/system.ts';
import { SYSTEMS } from './systems.ts';

/** A section of a cluster that was checked. */
export interface Section {
  readonly system: ChartSystem;
  readonly config: unknown;
}

/** Where sections stand. */
export interface SectionPlace {
  readonly defaults: Readonly<Record<string, unknown>>;
  readonly cluster: ClusterTop;
  /** Of the cluster in the fleet. */
  readonly index: number;
}

/** Sections without mistakes; mistakes go to `found`. */
export function readSections(place: SectionPlace, found: FleetProblem[]): readonly Section[] {
  const own = asMap(place.cluster.systems);
  const written = [...Object.keys(place.defaults), ...Object.keys(own)];
  // In the order of the table: the same systems give the same text, in whichever order they are written.
  const known = SYSTEMS.map(({ name }) => name).filter((name) => written.includes(name));
  return [...new Set([...known, ...written])].flatMap((name) => {
    const value = name in own ? own[name] : place.defaults[name];
    const system = SYSTEMS.find((one) => one.name === name);
    if (system === undefined) found.push({ path: originOf([name], place), text: unknownSystem(name) });
    return system === undefined || value === false ? [] : readSection(system, place, found);
  });
}

function readSection(system: ChartSystem, place: SectionPlace, found: FleetProblem[]): readonly Section[] {
  const own = asMap(place.cluster.systems);
  const kind = place.cluster.kind ?? 'standalone';
  if (!system.kinds.includes(kind)) {
    const text = `not for a ${kind} cluster, expected ${system.kinds.join(' or ')}`;
    // Defaults speak to whichever clusters they can.
    if (system.name in own) found.push({ path: originOf([system.name], place), text });
    return [];
  }
  const below = place.defaults[system.name];
  const config = overlay(isRecord(below) ? below : {}, own[system.name] ?? {});
  const { value, problems } = check(system.config, config, [system.name]);
  found.push(...problems.map((problem) => ({ ...problem, path: originOf(problem.path, place) })));
  return problems.length > 0 ? [] : [{ system, config: value }];
}

/** Mistakes that a system sees only together with the cluster, or what it finds surprising. */
export function sectionMistakes(
  sections: readonly Section[],
  context: ClusterContext,
  place: SectionPlace,
  kind: 'check' | 'warnings' = 'check',
): readonly FleetProblem[] {
  return sections.flatMap(({ system, config }) =>
    (system[kind]?.(config, context) ?? []).flatMap(({ path, text, ownOnly = false }) => {
      const origin = originOf([system.name, ...path], place);
      return ownOnly && origin[0] === 'defaults' ? [] : [{ path: origin, text }];
    }),
  );
}

function unknownSystem(name: string): string {
  const known = SYSTEMS.map((one) => one.name);
  return `unknown system, ${suggestion(name, known)}`;
}

/** Whoever wrote more of the way to a mistake wrote the mistake: the cluster, or the defaults. */
function originOf(path: FieldPath, place: SectionPlace): FieldPath {
  const written = depth(asMap(place.cluster.systems), path);
  return depth(place.defaults, path) > written
    ? ['defaults', 'systems', ...path]
    : ['clusters', place.index, 'systems', ...path];
}

/** How many parts of the path are there. */
function depth(value: unknown, path: FieldPath): number {
  const [first, ...rest] = path;
  if (first === undefined || typeof value !== 'object' || value === null || !(first in value)) return 0;
  return 1 + depth((value as Readonly<Record<string, unknown>>)[first], rest);
}

function overlay(below: unknown, above: unknown): unknown {
  if (above === true) return below;
  if (!isRecord(below) || !isRecord(above)) return above;
  const entries = Object.entries(above).map(([key, value]): [string, unknown] => [
    key,
    key === 'source' || !(key in below) ? value : overlay(below[key], value),
  ]);
  return { ...below, ...Object.fromEntries(entries) };
}

/** A map, or an empty one. */
export function asMap(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}
