/**
 * `npm run soak -- [--minutes N] [--changes-per-second N] [--seed N] [--report FILE]`: the reconciler's executable under changes
 * of every kind and kills of the API server, and whether its memory, files, sockets and watches stay flat.
 *
 * Prints a line every minute; exits with 1 when a value grows, when the program ended, or when the end is not what was declared.
 */
import { copyFileSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { missingControlPlane } from '../control-plane/build.ts';
import { startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import { discovering, type ReconcilerProcess } from '../reconcile/process.ts';
import { additional, GLOBAL, pullSecret, registriesOf } from '../reconcile/scene.ts';
import { counted } from '../support/counted.ts';
import { executable } from '../support/executable.ts';
import { HYPERSHIFT_CRDS } from '../support/hypershift.ts';
import { randomFrom } from '../support/random.ts';
import { CHANGES, choose, furnish, type Planes, TROUBLES } from './changes.ts';
import { judge, type Limit, type Sample } from './judge.ts';
import { soakReport } from './report.ts';

const SAMPLE_EVERY_S = 10;
const TROUBLE_EVERY_S = 150;
/** Allowed growth per hour. Other values are shown without a limit. */
const LIMITS: Readonly<Record<string, Limit>> = {
  'resident memory (MiB)': { share: 0.15 },
  'heap in use (MiB)': { share: 0.25 },
  'open files': { absolute: 4 },
  sockets: { absolute: 4 },
  'watches at the API server': { absolute: 4 },
};

const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '120' },
    'changes-per-second': { type: 'string', default: '3' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    report: { type: 'string' },
  },
});
const minutes = Number(flags.minutes);
const seed = Number(flags.seed);

async function furnished(): Promise<Planes> {
  const [management, hosted] = await Promise.all([
    startControlPlane({
      crds: [...HYPERSHIFT_CRDS, 'imagedigestmirrorsets.config.openshift.io', 'pullstatuses.pullwright.dev'],
    }),
    startControlPlane({ controllerManager: true, crds: ['pullstatuses.pullwright.dev'] }),
  ]);
  await furnish({ management, hosted });
  return { management, hosted };
}

async function sample(planes: Planes, program: ReconcilerProcess, port: number): Promise<Sample['values']> {
  const proc = `/proc/${program.pid}`;
  const rss = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`${proc}/status`, 'utf8'))?.[1];
  const files = readdirSync(`${proc}/fd`);
  const sockets = files.filter((fd) => isSocket(`${proc}/fd/${fd}`));
  const own = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const server = await watchesOf(planes);
  const events = await planes.hosted.client.request('GET', '/apis/events.k8s.io/v1/events?limit=1');
  return {
    'resident memory (MiB)': Number(rss) / 1024,
    'heap in use (MiB)': sumOf(own, /^nodejs_heap_size_used_bytes (\S+)$/gm) / 2 ** 20,
    'open files': files.length,
    sockets: sockets.length,
    ...(server === undefined ? {} : { 'watches at the API server': server }),
    'keys waiting': sumOf(own, /^workqueue_depth\{.*\} (\S+)$/gm),
    'passes so far': sumOf(own, /^controller_runtime_reconcile_total\{.*\} (\S+)$/gm),
    'events stored': (events.body.items?.length ?? 0) + Number(events.body.metadata?.remainingItemCount ?? 0),
  };
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('socket:');
  } catch {
    return false;
  }
}

/** Number of watches of all clients; the controller manager's share is constant. Undefined while a server is down. */
async function watchesOf({ management, hosted }: Planes): Promise<number | undefined> {
  let sum = 0;
  for (const { client } of [management, hosted]) {
    const { status, body } = await client.request('GET', '/metrics');
    if (status !== 200) return undefined;
    sum += sumOf(String(body), /^apiserver_longrunning_requests\{.*verb="WATCH".*\} (\S+)$/gm);
  }
  return sum;
}

function sumOf(text: string, pattern: RegExp): number {
  return [...text.matchAll(pattern)].reduce((sum, [, value]) => sum + Number(value), 0);
}

class Counts {
  readonly #counts = new Map<string, number>();
  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }
  all(): readonly (readonly [string, number])[] {
    return [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1));
  }
}

/** One change after the other until `over`. What the API server refuses (a namespace that is going) is counted as such. */
async function keepChanging(planes: Planes, counts: Counts, over: () => boolean): Promise<void> {
  const random = randomFrom(seed);
  const pauseMs = 1000 / Number(flags['changes-per-second']);
  let troubleAt = performance.now() + TROUBLE_EVERY_S * 1000;
  while (!over()) {
    const isTrouble = performance.now() > troubleAt;
    const change = choose(isTrouble ? TROUBLES : CHANGES, random);
    if (isTrouble) troubleAt = performance.now() + TROUBLE_EVERY_S * 1000;
    try {
      await change.make(planes, random);
      counts.add(change.name);
    } catch {
      counts.add('refused by the API server');
    }
    await delay(pauseMs * (0.5 + random()));
  }
}

async function main(): Promise<number> {
  const planes = await furnished();
  const { management } = planes;
  const program = join(management.folder, 'pullwright');
  // A copy, so that a build meanwhile is of no interest.
  copyFileSync(await executable(), program);
  const config = join(management.folder, 'config.yaml');
  writeFileSync(
    config,
    'systems: { global-pull-secret: {}, pull-secret-injection: {}, credential-provider: false, registry-overrides: { catalogs: false } }\n',
  );
  const ports = ['--log-level=info', '--health-port=0', '--metrics-port=0'];
  const child = discovering(management.kubeconfig, config, ports, [program]);
  const port = await child.port('metrics');
  const started = performance.now();
  const counts = new Counts();
  const samples: Sample[] = [];
  let isOver = false;
  const changing = keepChanging(planes, counts, () => isOver);
  try {
    while (performance.now() - started < minutes * 60_000 && child.running) {
      await delay(SAMPLE_EVERY_S * 1000);
      const values = await sample(planes, child, port).catch(() => undefined);
      if (values === undefined) continue;
      samples.push({ seconds: (performance.now() - started) / 1000, values });
      if (samples.length % 6 === 0) process.stdout.write(`${JSON.stringify(values)}\n`);
    }
    isOver = true;
    await changing;
    const problems = [...(await atTheEnd(planes, child)), ...tooLittle(samples.length, counts)];
    const verdicts = judge(samples, LIMITS);
    const text = soakReport({
      seconds: (performance.now() - started) / 1000,
      seed,
      changesPerSecond: Number(flags['changes-per-second']),
      machine: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`,
      samples: samples.length,
      counts: counts.all(),
      verdicts,
      problems,
    });
    process.stdout.write(text);
    if (flags.report !== undefined) writeFileSync(flags.report, text);
    return problems.length === 0 && verdicts.every(({ ok }) => ok) ? 0 : 1;
  } finally {
    isOver = true;
    await changing;
    await child.stop();
    await Promise.all([management.stop(), planes.hosted.stop()]);
  }
}

/** A run in which little happened says nothing. */
function tooLittle(samples: number, counts: Counts): readonly string[] {
  const of = (kind: typeof CHANGES): number =>
    counts.all().reduce((sum, [name, count]) => sum + (kind.some((one) => one.name === name) ? count : 0), 0);
  try {
    counted(
      { samples, changes: of(CHANGES), troubles: of(TROUBLES) },
      { samples: 10, changes: Math.ceil(minutes), troubles: Math.max(1, Math.floor(minutes / 5)) },
    );
    return [];
  } catch (error) {
    return [String(error)];
  }
}

/** Checks that the last declared state is applied, and that nothing is pending. */
async function atTheEnd(
  { management, hosted }: Planes,
  child: ReconcilerProcess,
): Promise<readonly string[]> {
  if (!child.running) return [`the program ended: ${child.log.slice(-500)}`];
  await management.apply(pullSecret('pull-secret', 'clusters-prod', ['quay.io']));
  await hosted.apply(additional('last.example.com'));
  try {
    await eventually(async () => {
      const registries = registriesOf(await hosted.get(GLOBAL)).join(', ');
      if (registries !== 'last.example.com, quay.io')
        throw new Error(`the merged secret holds ${registries}`);
    });
    return [];
  } catch (error) {
    return [String(error)];
  }
}

const missing = missingControlPlane();
if (missing !== undefined) {
  process.stderr.write(`Cannot run: it ${missing}\n`);
  process.exitCode = 1;
} else process.exitCode = await main();
