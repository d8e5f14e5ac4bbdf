/**
 * 200 hosted clusters in one process, one of them hostile: when the others have their pull secrets after a start, how long a rotation of
 * theirs takes from then on, and the processor time of the process until all have theirs.
 *
 * Beside each such process runs one whose clusters are all good, started at the same instant and asked for the same: what else the
 * machine does hits both, and each ratio is of such a pair. The first row is a pair of two good ones, and so the noise. Ratios are
 * medians over all rounds.
 *
 * `npm run bench tenants.bench` takes some eight minutes a round; `node bench/tenants.bench.ts 'no JSON'` runs one part.
 * `PULLWRIGHT_CLUSTERS` and `PULLWRIGHT_ROUNDS` set how many there are. Each pair is said on stderr, and ends in time or fails.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../test/control-plane/eventually.ts';
import { processorMs } from '../test/hostile/heavy-secrets.ts';
import { NODE, ReconcilerProcess } from '../test/reconcile/process.ts';
import { counted } from '../test/support/counted.ts';
import { HostedStub } from './hosted-stub.ts';
import { HOSTILITIES, type Hostility } from './hostile-answers.ts';
import { ms, percentile, printTable, ratio, spread } from './measure.ts';

const CLUSTERS = Number(process.env['PULLWRIGHT_CLUSTERS'] ?? 200);
const ROUNDS = Number(process.env['PULLWRIGHT_ROUNDS'] ?? 3);
/** Rotations of good clusters, one every so many milliseconds. */
const ROTATIONS = 400;
const ROTATION_EVERY_MS = 30;
const AT_MOST_MS = 300_000;
const NOISE = 'as a good one (the noise)';

const good = Array.from({ length: CLUSTERS - 1 }, (_, at) => `hosted-${at + 1}`);
/** Two servers of many clusters: one for the process whose clusters are all good. */
const [plain, harmed] = await Promise.all([HostedStub.start(), HostedStub.start()]);
for (const stub of [plain, harmed]) stub.clusters = CLUSTERS;

/** What one process of a pair showed, all in milliseconds. */
interface Looked {
  /** From the start of the process to the secret of the slowest but one in a hundred. */
  readonly start: number;
  readonly processor: number;
  /** The rotation that takes longest but one in a hundred. */
  readonly rotation: number;
  readonly rotationsProcessor: number;
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

async function looked(
  stub: HostedStub,
  reconciler: ReconcilerProcess,
  bothAreUp: () => Promise<void>,
): Promise<Looked> {
  const started = performance.now();
  await eventually(
    () => {
      const missing = good.filter((name) => !stub.merges.at.has(name)).length;
      if (missing > 0) throw new Error(`${missing} of ${good.length} have nothing:\n${reconciler.stderr}`);
    },
    { withinMs: AT_MOST_MS, everyMs: 20 },
  );
  const processor = processorMs(reconciler.pid);
  const starts = good.map((name) => (stub.merges.at.get(name) ?? Number.NaN) - started);
  await bothAreUp();
  const before = processorMs(reconciler.pid);
  const rotations = await rotate(stub);
  return {
    start: p99(starts),
    processor,
    rotation: p99(rotations),
    rotationsProcessor: processorMs(reconciler.pid) - before,
  };
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

function p99(values: readonly number[]): number {
  return percentile(
    values.toSorted((a, b) => a - b),
    0.99,
  );
}

type Pair = Readonly<Record<'without' | 'beside', Looked>>;

async function pair(hostility: Hostility | undefined): Promise<Pair> {
  for (const stub of [plain, harmed]) stub.forget();
  harmed.hostility = hostility;
  const reconcilers = [begin(plain), begin(harmed)] as const;
  let up = 0;
  const bothAreUp = async (): Promise<void> => {
    up += 1;
    await eventually(
      () => {
        if (up < 2) throw new Error('the other process of the pair is not up');
      },
      { withinMs: AT_MOST_MS },
    );
    await delay(2000);
  };
  try {
    const [without, beside] = await Promise.all([
      looked(plain, reconcilers[0], bothAreUp),
      looked(harmed, reconcilers[1], bothAreUp),
    ]);
    mustHaveHarmed(hostility);
    process.stderr.write(`  ${hostility ?? NOISE}: ${JSON.stringify({ without, beside })}\n`);
    return { without, beside };
  } finally {
    await Promise.all(reconcilers.map((one) => one.stop('SIGKILL')));
  }
}

/** A look at which the hostile cluster was hardly asked says nothing. */
function mustHaveHarmed(hostility: Hostility | undefined): void {
  const { hostileRequests: requests, changes } = harmed;
  if (hostility === 'ten thousand changes a second') counted({ changes }, { changes: 10_000 });
  else if (hostility !== undefined) counted({ requests }, { requests: 2 });
}

const part = process.argv[2];
const kinds = [undefined, ...HOSTILITIES.filter((one) => part === undefined || one === part)];
const pairs = new Map<Hostility | undefined, Pair[]>();
for (let round = 1; round <= ROUNDS; round += 1) {
  process.stderr.write(`round ${round} of ${ROUNDS}\n`);
  for (const hostility of kinds)
    pairs.set(hostility, [...(pairs.get(hostility) ?? []), await pair(hostility)]);
}
await Promise.all([plain.stop(), harmed.stop()]);

for (const [title, latency, processor] of [
  ['from the start of the process to their pull secrets', 'start', 'processor'],
  ['from a rotation to the merged secret', 'rotation', 'rotationsProcessor'],
] as const)
  printTable(
    `${good.length} good clusters beside another one, ${title}`,
    kinds.map((hostility) => {
      const seen = pairs.get(hostility) ?? [];
      const median = (of: (one: Pair) => number): number => spread(seen.map(of)).median;
      return {
        'one cluster answers with': hostility ?? NOISE,
        'p99 without it (ms)': ms(median(({ without }) => without[latency])),
        'with it': ms(median(({ beside }) => beside[latency])),
        ratio: ratio(
          median(({ without, beside }) => beside[latency] / without[latency]),
          1,
        ),
        'processor time without (ms)': ms(median(({ without }) => without[processor])),
        with: ms(median(({ beside }) => beside[processor])),
        'of that without': ratio(
          median(({ without, beside }) => beside[processor] / without[processor]),
          1,
        ),
      };
    }),
  );
