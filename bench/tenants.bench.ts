/**
 * 200 hosted clusters in one process, all good, and one of them hostile: when the others have their pull secrets, and the processor time
 * of the process until then, which says the same on a machine that does other work beside it.
 * `node bench/tenants.bench.ts 'no JSON'` runs one part; `PULLWRIGHT_CLUSTERS` sets how many there are.
 */
import { eventually } from '../test/control-plane/eventually.ts';
import { processorMs } from '../test/hostile/heavy-secrets.ts';
import { NODE, ReconcilerProcess } from '../test/reconcile/process.ts';
import { HostedStub } from './hosted-stub.ts';
import { HOSTILITIES, type Hostility } from './hostile-answers.ts';
import { ms, percentile, printTable, ratio } from './measure.ts';

const CLUSTERS = Number(process.env['PULLWRIGHT_CLUSTERS'] ?? 200);
const stub = await HostedStub.start();
stub.clusters = CLUSTERS;

interface Looked {
  /** Milliseconds from the start of the process to the secret of each good cluster, sorted. */
  readonly at: readonly number[];
  /** Processor time until all of them had theirs. */
  readonly cpu: number;
}

async function looked(hostility: Hostility | undefined): Promise<Looked> {
  stub.forget();
  stub.hostility = hostility;
  const started = performance.now();
  const reconciler = new ReconcilerProcess(NODE, [
    `--kubeconfig=${stub.kubeconfig}`,
    '--discover',
    '--allow-address=127.0.0.0/8',
    `--config=${stub.config}`,
  ]);
  const good = (): readonly number[] =>
    [...stub.mergedAt].filter(([name]) => name !== 'hosted-0').map(([, at]) => at - started);
  await eventually(
    () => {
      if (good().length < CLUSTERS - 1) throw new Error(`${good().length} of ${CLUSTERS - 1} have theirs`);
    },
    { withinMs: 300_000, everyMs: 50 },
  );
  const cpu = processorMs(reconciler.pid);
  await reconciler.stop('SIGKILL');
  return { at: good().toSorted((a, b) => a - b), cpu };
}

await looked(undefined);
const rows = [];
const part = process.argv[2];
for (const hostility of HOSTILITIES.filter((one) => part === undefined || one === part)) {
  const quiet = await looked(undefined);
  const beside = await looked(hostility);
  const [before, after] = [percentile(quiet.at, 0.99), percentile(beside.at, 0.99)];
  rows.push({
    'one cluster answers with': hostility,
    'p99 without it': ms(before),
    'p99 with it': ms(after),
    ratio: ratio(after, before),
    'processor time without': ms(quiet.cpu),
    with: ms(beside.cpu),
    'of that without': ratio(beside.cpu, quiet.cpu),
  });
}
printTable(
  `${CLUSTERS - 1} good clusters until they have their pull secrets, from the start of the process`,
  rows,
);
await stub.stop();
