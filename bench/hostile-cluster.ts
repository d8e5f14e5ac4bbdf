/**
 * The API server of one hostile cluster, as a program of its own: what it spends is that of its machine, and not of the good ones' server. Takes
 * a hostility from its parent, answers with the kubeconfig that leads to it, and tells from then on what it was asked.
 */
import { setPriority } from 'node:os';
import { HostedStub } from './hosted-stub.ts';
import type { Hostility } from './hostile-answers.ts';
import type { HostileReport } from './hostile-process.ts';

const REPORT_EVERY_MS = 50;
const stub = await HostedStub.start();
// Another machine would not take the processor of those that are measured.
setPriority(19);
const tell = (report: HostileReport): void => void process.send?.(report);
process.on('message', (hostility: Hostility) => {
  stub.forget();
  stub.hostility = hostility;
  tell({ kubeconfig: stub.kubeconfigOf('hosted-0') });
});
const timer = setInterval(
  () => tell({ requests: stub.hostileRequests, changes: stub.changes }),
  REPORT_EVERY_MS,
);
process.once('disconnect', () => {
  clearInterval(timer);
  void stub.stop();
});
