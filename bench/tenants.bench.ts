/**
 * 200 hosted clusters in one process, one of them hostile: when the others have their pull secrets after a start, how long a rotation of
 * theirs takes, and the processor time of the process.
 *
 * For the start, a process whose clusters are all good is started at the same instant and asked for the same: what else the machine does
 * hits both. For rotations the one cluster is good, hostile, good again, hostile in the next way, and so on in one process, a few seconds
 * each: what is slow for a while is slow in all, and what one hostility leaves behind is part of the next look. Each hostility is compared
 * with all turns in which the one was good, and its server is a program of its own, as it is a machine of its own; the first row, of every other one of these turns against the rest, is the noise. Ratios of starts are
 * medians over all rounds, and p99 of rotations is the median of that of each turn: a machine that stands still for a second does so in one of them.
 *
 * `npm run bench tenants.bench` takes some twenty minutes a round; `node bench/tenants.bench.ts 'no JSON'` runs one hostility beside the noise,
 * `--part rotations` (or `starts`) one half. `PULLWRIGHT_CLUSTERS` and `PULLWRIGHT_ROUNDS` set how many there are. Each part is said on stderr, and
 * ends in time or fails.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { eventually } from '../test/control-plane/eventually.ts';
import { processorMs } from '../test/hostile/heavy-secrets.ts';
import { NODE, ReconcilerProcess } from '../test/reconcile/process.ts';
import { HostedStub } from './hosted-stub.ts';
import { HOSTILITIES, type Hostility } from './hostile-answers.ts';
import { HostileProcess } from './hostile-process.ts';
import { ms, percentile, printTable, ratio, spread } from './measure.ts';

const CLUSTERS = Number(process.env['PULLWRIGHT_CLUSTERS'] ?? 200);
const ROUNDS = Number(process.env['PULLWRIGHT_ROUNDS'] ?? 3);
/** Rotations of good clusters in one turn, one every so many milliseconds. */
const ROTATIONS = 200;
const ROTATION_EVERY_MS = 30;
/** Turns of each hostility in one round. */
const TURNS = 3;
/** From one turn to the next, so that what the change costs is over. */
const SETTLED_MS = 2000;
const AT_MOST_MS = 300_000;
const NOISE = 'as a good one (the noise)';
const ONE = 'hosted-0';

const good = Array.from({ length: CLUSTERS - 1 }, (_, at) => `hosted-${at + 1}`);
/** Two servers of many clusters: one for the process whose clusters are all good. */
const [plain, harmed] = await Promise.all([HostedStub.start(), HostedStub.start()]);
for (const stub of [plain, harmed]) stub.clusters = CLUSTERS;
const hostile = new HostileProcess();

/** What one process of a pair showed, in milliseconds. */
interface Started {
  /** From the start of the process to the secret of the slowest but one in a hundred. */
  readonly start: number;
  readonly processor: number;
}

/** What the turns of one kind showed, in milliseconds. */
interface Turns {
  /** By turn. */
  readonly rotations: (readonly number[])[];
  /** Of the process, while they were made. */
  processor: number;
}

function begin(stub: HostedStub): ReconcilerProcess {
  return new ReconcilerProcess(NODE, [
    `--kubeconfig=${stub.kubeconfig}`,
    '--discover',
    '--allow-address=127.0.0.0/8',
    `--config=${stub.config}`,
    '--log-level=error',
  ]);
}

async function started(stub: HostedStub, reconciler: ReconcilerProcess): Promise<Started> {
  const before = performance.now();
  await eventually(
    () => {
      const missing = good.filter((name) => !stub.merges.at.has(name)).length;
      if (missing > 0) throw new Error(`${missing} of ${good.length} have nothing:\n${reconciler.stderr}`);
    },
    { withinMs: AT_MOST_MS, everyMs: 20 },
  );
  const processor = processorMs(reconciler.pid);
  const starts = good.map((name) => (stub.merges.at.get(name) ?? Number.NaN) - before);
  return { start: percentileOf(starts, 0.99), processor };
}

/** One cluster after the other, whether or not the one before has it by then. */
async function rotate(stub: HostedStub): Promise<readonly number[]> {
  const all: Promise<number>[] = [];
  for (let at = 0; at < ROTATIONS; at += 1) {
    all.push(stub.rotated(good[at % good.length] ?? ''));
    await delay(ROTATION_EVERY_MS);
  }
  const late = delay(AT_MOST_MS, undefined, { ref: false }).then(() => {
    throw new Error(`a rotation took longer than ${AT_MOST_MS} ms`);
  });
  return Promise.race([Promise.all(all), late]);
}

function percentileOf(values: readonly number[], which: number): number {
  return percentile(
    values.toSorted((a, b) => a - b),
    which,
  );
}

/** Of the turn in the middle; 0 when there was none. */
function p99Of(turns: Turns['rotations']): number {
  return turns.length === 0
    ? 0
    : percentileOf(
        turns.map((one) => percentileOf(one, 0.99)),
        0.5,
      );
}

type Pair = Readonly<Record<'without' | 'beside', Started>>;

async function pair(hostility: Hostility | undefined): Promise<Pair> {
  for (const stub of [plain, harmed]) stub.forget();
  await make(hostility);
  const reconcilers = [begin(plain), begin(harmed)] as const;
  try {
    const [without, beside] = await Promise.all([
      started(plain, reconcilers[0]),
      started(harmed, reconcilers[1]),
    ]);
    if (hostility !== undefined && !hasHarmed(hostility))
      throw new Error(`${ONE} was hardly asked: ${hostility}`);
    return { without, beside };
  } finally {
    await Promise.all(reconcilers.map((one) => one.stop('SIGKILL')));
  }
}

/** The one cluster does this from now on, as seen by whoever reads its kubeconfig anew. */
async function make(hostility: Hostility | undefined): Promise<void> {
  harmed.elsewhere = hostility === undefined ? undefined : await hostile.become(hostility);
  harmed.hostility = hostility;
}

/** The one cluster goes, and comes back as one that does this. */
async function become(hostility: Hostility | undefined): Promise<void> {
  harmed.show(ONE, 'gone');
  await delay(500);
  await make(hostility);
  harmed.show(ONE, 'there');
  await eventually(
    () => {
      const is = hostility === undefined ? harmed.merges.at.has(ONE) : hasHarmed(hostility);
      if (!is) throw new Error(`${ONE} is not what it is to be: ${hostility ?? 'good'}`);
    },
    { withinMs: AT_MOST_MS },
  );
  await delay(SETTLED_MS);
}

/** Rotations while the one is good: `evens` and `odds` are the same, turn by turn. */
type Seen = ReadonlyMap<Hostility | 'evens' | 'odds', Turns>;

/** Good and hostile by turns, in one process. */
async function byTurns(hostilities: readonly Hostility[], seen: Seen): Promise<void> {
  harmed.forget();
  await make(undefined);
  const reconciler = begin(harmed);
  const turn = async (into: Turns | undefined): Promise<void> => {
    const before = processorMs(reconciler.pid);
    const rotations = await rotate(harmed);
    into?.rotations.push(rotations);
    if (into !== undefined) into.processor += processorMs(reconciler.pid) - before;
  };
  try {
    await started(harmed, reconciler);
    let good = 0;
    for (const hostility of hostilities) {
      for (let of = 0; of < TURNS; of += 1) {
        await become(undefined);
        await turn(seen.get((good += 1) % 2 === 0 ? 'evens' : 'odds'));
        await become(hostility);
        await turn(seen.get(hostility));
      }
      process.stderr.write(
        `  ${hostility}: p99 of rotations so far ${[...seen].map(([kind, { rotations }]) => `${kind} ${Math.round(p99Of(rotations))}`).join(', ')}\n`,
      );
    }
  } finally {
    await reconciler.stop('SIGKILL');
  }
}

/** A look at which the hostile cluster was hardly asked says nothing. */
function hasHarmed(hostility: Hostility): boolean {
  const { requests, changes } = hostile;
  return hostility === 'ten thousand changes a second' ? changes >= 10_000 : requests >= 2;
}

const { values, positionals } = parseArgs({
  options: { part: { type: 'string' } },
  allowPositionals: true,
});
const hostilities = HOSTILITIES.filter((one) => positionals.length === 0 || positionals.includes(one));
const starts = new Map([undefined, ...hostilities].map((kind) => [kind, [] as Pair[]] as const));
const none = (): Turns => ({ rotations: [], processor: 0 });
const seen: Seen = new Map((['evens', 'odds', ...hostilities] as const).map((kind) => [kind, none()]));
for (let round = 1; round <= ROUNDS; round += 1) {
  process.stderr.write(`round ${round} of ${ROUNDS}\n`);
  for (const [kind, pairs] of values.part === 'rotations' ? [] : starts) {
    const one = await pair(kind);
    pairs.push(one);
    process.stderr.write(`  start, ${kind ?? NOISE}: ${JSON.stringify(one)}\n`);
  }
  if (values.part !== 'starts') await byTurns(hostilities, seen);
}
await Promise.all([plain.stop(), harmed.stop(), hostile.stop()]);

function printStarts(): void {
  printTable(
    `${good.length} good clusters beside another one, from the start of the process to their pull secrets`,
    [...starts].map(([kind, pairs]) => {
      const median = (of: (one: Pair) => number): number => spread(pairs.map(of)).median;
      return {
        'one cluster answers with': kind ?? NOISE,
        'p99 without it (ms)': ms(median(({ without }) => without.start)),
        'with it': ms(median(({ beside }) => beside.start)),
        ratio: ratio(
          median(({ without, beside }) => beside.start / without.start),
          1,
        ),
        'processor time without (ms)': ms(median(({ without }) => without.processor)),
        with: ms(median(({ beside }) => beside.processor)),
      };
    }),
  );
}

function printRotations(): void {
  const of = (kind: Hostility | 'evens' | 'odds'): Turns => seen.get(kind) ?? none();
  const [evens, odds] = [of('evens'), of('odds')];
  const goodOnes = {
    rotations: [...evens.rotations, ...odds.rotations],
    processor: evens.processor + odds.processor,
  };
  const perTurn = ({ processor, rotations }: Turns): number => processor / rotations.length;
  const median = ({ rotations }: Turns): number => percentileOf(rotations.flat(), 0.5);
  const row = (name: string, without: Turns, beside: Turns): Record<string, string> => ({
    'one cluster answers with': name,
    rotations: `${beside.rotations.flat().length}`,
    'median without it (ms)': ms(median(without)),
    'with it': ms(median(beside)),
    'p99 without it': ms(p99Of(without.rotations)),
    'p99 with it': ms(p99Of(beside.rotations)),
    'ratio of p99': ratio(p99Of(beside.rotations), p99Of(without.rotations)),
    'processor time': ratio(perTurn(beside), perTurn(without)),
  });
  printTable(
    `${good.length} good clusters beside another one, from a rotation to the merged secret; ${goodOnes.rotations.flat().length} rotations beside a good one`,
    [row(NOISE, evens, odds), ...hostilities.map((kind) => row(kind, goodOnes, of(kind)))],
  );
}

if (values.part !== 'rotations') printStarts();
if (values.part !== 'starts') printRotations();
