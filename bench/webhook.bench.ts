/**
 * Cost of injection for pod creation: without Pullwright, with the admission policy, with the webhook, each at the highest rate of
 * creations that the API server sustains here and at half of it. The table shows the API server's metrics next to client times.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { readProfile } from '../runtime/pull-secret-injection/kinds/profile.ts';
import { compileInjectionPolicy, injectionPlan } from '../runtime/pull-secret-injection/plan/plan.ts';
import { startControlPlane } from '../test/control-plane/control-plane.ts';
import type { TestObject } from '../test/control-plane/resource-path.ts';
import {
  createPod,
  profileObject,
  readyNamespace,
  sourceObject,
  startPlane,
} from '../test/pull-secret-injection/live.ts';
import { webhookHost } from '../test/pull-secret-injection/webhook-host.ts';
import { freePort } from '../test/support/loopback.ts';
import { ms, percentile, printTable, type Row } from './measure.ts';

const PARALLEL = 16;
const SECONDS = Number(process.env['SECONDS'] ?? 6);
const HANDLER = 'pullwright_webhook_handler_seconds';
const WEBHOOK = 'apiserver_admission_webhook_admission_duration_seconds';
const PLUGIN = 'apiserver_admission_controller_admission_duration_seconds';

/** Buckets of a histogram, by upper bound, and its sum. */
interface Histogram {
  readonly buckets: ReadonlyMap<number, number>;
  readonly sum: number;
  readonly count: number;
}

const plane = await startPlane({}, startControlPlane);
await readyNamespace(plane, 'shop', { team: 'a' });
await plane.controllerManager?.terminate();
await plane.apply(sourceObject('shop', 'reg', ['quay.io']));
const profile = profileObject('team', {
  namespaceSelector: { matchLabels: { team: 'a' } },
  selector: {},
  mode: 'Inject',
  secrets: [{ name: 'reg' }],
});

let made = 0;
async function create(): Promise<{ readonly took: number; readonly injected: boolean }> {
  made += 1;
  const started = performance.now();
  const answer = await createPod(plane, { name: `p-${made}`, namespace: 'shop' });
  if ('refused' in answer) throw new Error(answer.refused);
  return { took: performance.now() - started, injected: answer.names.includes('reg') };
}

interface Load {
  readonly perSecond: number;
  /** Milliseconds, sorted. */
  readonly times: readonly number[];
  readonly injected: number;
}

/** Creates pods for {@link SECONDS}: as fast as the answers come, or so many a second, evenly. */
async function load(perSecond?: number): Promise<Load> {
  const started = performance.now();
  const until = started + SECONDS * 1000;
  const times: number[] = [];
  let injected = 0;
  const once = async (): Promise<void> => {
    const one = await create();
    times.push(one.took);
    if (one.injected) injected += 1;
  };
  if (perSecond === undefined) {
    const worker = async (): Promise<void> => {
      while (performance.now() < until) await once();
    };
    await Promise.all(Array.from({ length: PARALLEL }, worker));
  } else {
    const running: Promise<void>[] = [];
    for (let at = 0; performance.now() < until; at += 1) {
      await delay(Math.max(0, started + (at * 1000) / perSecond - performance.now()));
      running.push(once());
    }
    await Promise.all(running);
  }
  const seconds = (performance.now() - started) / 1000;
  return { perSecond: times.length / seconds, times: times.sort((a, b) => a - b), injected };
}

interface Series {
  readonly name: string;
  readonly labels: string;
  readonly value: number;
}

function seriesOf(text: string): readonly Series[] {
  return text.split('\n').flatMap((line) => {
    const [, name, labels, value] = /^(\w+)\{(.*)\} (\S+)$/.exec(line) ?? [];
    return name === undefined || labels === undefined ? [] : [{ name, labels, value: Number(value) }];
  });
}

/** Adds up the series of `text` that have all of these labels. */
function histogramOf(text: string, name: string, labels: Readonly<Record<string, string>>): Histogram {
  const wanted = Object.entries(labels).map(([key, value]) => `${key}="${value}"`);
  const series = seriesOf(text).filter((one) => wanted.every((mark) => one.labels.includes(mark)));
  const total = (suffix: string): number =>
    series.filter((one) => one.name === `${name}_${suffix}`).reduce((sum, { value }) => sum + value, 0);
  const buckets = new Map<number, number>();
  for (const one of series.filter((candidate) => candidate.name === `${name}_bucket`)) {
    const bound = /le="([^"]+)"/.exec(one.labels)?.[1] ?? '';
    const upTo = bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound);
    buckets.set(upTo, (buckets.get(upTo) ?? 0) + one.value);
  }
  return { buckets, sum: total('sum'), count: total('count') };
}

function between(before: Histogram, after: Histogram): Histogram {
  const buckets = [...after.buckets].map(
    ([bound, value]) => [bound, value - (before.buckets.get(bound) ?? 0)] as const,
  );
  return { buckets: new Map(buckets), sum: after.sum - before.sum, count: after.count - before.count };
}

/** Upper bound of the bucket in which the share lies: the true value is at most that. */
function atMost({ buckets, count }: Histogram, share: number): string {
  const found = [...buckets].sort(([a], [b]) => a - b).find(([, value]) => value >= share * count);
  return count === 0 || found === undefined ? '' : `<= ${ms(found[0] * 1000)}`;
}

function mean({ sum, count }: Histogram): string {
  return count === 0 ? '' : ms((sum / count) * 1000);
}

async function apiServerText(): Promise<string> {
  return String((await plane.client.request('GET', '/metrics')).body);
}

async function handlerText(port: number | undefined): Promise<string> {
  return port === undefined ? '' : await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
}

const rows: Row[] = [];
/** One row: a load, and what both sides measured meanwhile. */
async function measure(what: string, rate: string, perSecond?: number, healthPort?: number): Promise<Load> {
  const [serverBefore, handlerBefore] = [await apiServerText(), await handlerText(healthPort)];
  const done = await load(perSecond);
  const [serverAfter, handlerAfter] = [await apiServerText(), await handlerText(healthPort)];
  const server = (name: string, labels: Record<string, string>): Histogram =>
    between(histogramOf(serverBefore, name, labels), histogramOf(serverAfter, name, labels));
  const handler = between(histogramOf(handlerBefore, HANDLER, {}), histogramOf(handlerAfter, HANDLER, {}));
  const called = server(WEBHOOK, { name: 'inject.pullwright.dev', type: 'admit' });
  const policy = server(PLUGIN, { name: 'MutatingAdmissionPolicy', type: 'admit', operation: 'CREATE' });
  rows.push({
    what,
    rate,
    'pods / s': done.perSecond.toFixed(0),
    'injected %': ((done.injected / done.times.length) * 100).toFixed(0),
    'creation ms, median': ms(percentile(done.times, 0.5)),
    'creation ms, p99': ms(percentile(done.times, 0.99)),
    'handler p99 ms': atMost(handler, 0.99),
    'API server: webhook call, mean ms': mean(called),
    'API server: policies, mean ms': mean(policy),
  });
  return done;
}

/** At the highest rate, and at half of what that was. */
async function both(what: string, healthPort?: number): Promise<void> {
  const { perSecond } = await measure(what, 'highest', undefined, healthPort);
  await measure(what, 'half', perSecond / 2, healthPort);
}

async function untilInjected(wanted: boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while ((await create()).injected !== wanted) {
    if (performance.now() > deadline) throw new Error(`pods do not become ${wanted ? 'injected' : 'plain'}`);
    await delay(100);
  }
}

await load();
await both('nothing of ours');

const read = readProfile({ ...profile, metadata: { name: 'team' }, spec: profile['spec'] });
if (!read.ok) throw new Error('the profile cannot be read');
const compiled = compileInjectionPolicy(injectionPlan([read.profile]), {
  apiVersion: 'admissionregistration.k8s.io/v1',
  excludedNamespaces: ['pullwright-system'],
});
if (!compiled.ok) throw new Error(compiled.problem);
const policies = [compiled.policy, compiled.binding] as readonly TestObject[];
for (const object of policies) await plane.apply(object);
await untilInjected(true);
await both('policy');
for (const object of policies) await plane.remove(object);
await untilInjected(false);

await plane.apply(profile);
const host = await webhookHost(plane);
const healthPort = await freePort();
const webhook = host.start(0, healthPort);
await host.callAt(await webhook.port());
await untilInjected(true);
await both('webhook', healthPort);

printTable('Pods created one after the other against one API server, by who adds the names', rows);
await webhook.stop();
await plane.stop();
