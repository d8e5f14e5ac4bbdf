// deadline: 300 s
// needs: control plane
/**
 * The reconciler as a process, with the rights of the charts, on a real API server with the real definitions: renders, holds,
 * reverts drift, prunes; beside a stand-in of the Machine Config Operator it stops writing and reports that.
 */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import { test } from '../support/suite.ts';
import { CR, configOf, OperatorStandIn, rollOut, workerNode } from './support/machine-config-operator.ts';
import { ReconcilerCluster, rounds, SLOW, STATUS, settled, soon } from './support/reconciler-cluster.ts';

const cluster = await ReconcilerCluster.start();
const { plane } = cluster;

test('renders, holds back, goes on, puts right what a person edits, and takes back', async () => {
  await workerNode(plane, 'worker-0', 34);
  await cluster.entries('docker.io', '1.dkr.ecr.eu-west-1.amazonaws.com');
  const process = cluster.reconciler('auto');
  await soon(() => cluster.file(), /- docker\.io/);
  await soon(() => cluster.condition('MachineConfigRendered'), 'True MachineConfigRenderingSucceeded');
  assert.equal(await cluster.condition('Validated'), 'False ConfigurationPartiallyApplied');
  await soon(() => cluster.verdict('pool worker'), 'Pending Progressing');
  assert.deepEqual(
    [await cluster.verdict('docker.io'), await cluster.verdict('1.dkr.ecr.eu-west-1.amazonaws.com')],
    ['Accepted Rendered', 'Rejected Conflict'],
  );
  await rollOut(plane, true);
  await soon(() => cluster.verdict('pool worker'), 'Accepted RolledOut');

  // An older node joins while the next entries roll out.
  await rollOut(plane, false);
  await workerNode(plane, 'worker-1', 33);
  await soon(() => cluster.condition('MachineConfigRendered'), 'False UnsupportedVersion');
  await cluster.entries('docker.io', 'quay.io');
  await soon(() => cluster.condition('Validated'), 'True Succeeded');
  assert.doesNotMatch((await cluster.file()) ?? '', /quay\.io/, 'what is rendered stays');
  await workerNode(plane, 'worker-1', 35);
  await soon(() => cluster.file(), /quay\.io/);
  await soon(() => cluster.condition('MachineConfigRendered'), 'True MachineConfigRenderingSucceeded');

  // A person edits the MachineConfig.
  const before = await process.writes();
  const edited = await plane.client.request(
    'PATCH',
    '/apis/machineconfiguration.openshift.io/v1/machineconfigs/97-worker-generated-credentialproviderconfig?fieldManager=kubectl-edit',
    { spec: { config: { storage: { files: [] } } } },
    'application/merge-patch+json',
  );
  assert.equal(edited.status, 200, JSON.stringify(edited.body));
  await soon(() => cluster.file(), /quay\.io/);
  const after = await process.writes();
  assert.ok(after - before <= 3, `${after - before} writes for one edit`);

  await plane.remove(CR);
  await eventually(async () => assert.equal(await plane.get(configOf('worker')), undefined), SLOW);
  await eventually(async () => assert.equal(await plane.get(STATUS), undefined), SLOW);
  assert.equal(await process.stop(), 0);
  assert.doesNotMatch(process.log, /forbidden/i);
});

test('auto: where the Machine Config Operator manages it, everything is left to it, through many rounds', async () => {
  const process = cluster.reconciler('auto');
  await cluster.entries('docker.io');
  await soon(() => cluster.file(), /- docker\.io/);
  // The operator starts later, and renders other files.
  const operator = new OperatorStandIn(plane, (images) => [{ path: '/etc/theirs', text: images.join() }]);
  operator.start(150);
  try {
    await soon(() => cluster.file(), 'docker.io');
    await soon(() => cluster.condition('ManagedElsewhere', STATUS), 'True Drifted');
    const [writes, theirs] = await settled(process, operator);
    await rounds(operator, 20);
    assert.equal(await process.writes(), writes, 'we write nothing while it goes on');
    assert.equal(operator.writes, theirs, 'and it has nothing to correct');
    // The entries change: the operator still renders them.
    await cluster.entries('docker.io', 'quay.io');
    await soon(() => cluster.file(), 'docker.io,quay.io');
    await rounds(operator, 10);
    assert.equal(operator.writes, theirs + 1);
    assert.ok((await process.writes()) - writes <= 4, 'only our own report is written');
    assert.equal(await cluster.file(), 'docker.io,quay.io');
  } finally {
    await operator.stop();
    await process.stop();
  }
  assert.ok((await plane.get(configOf('worker'))) !== undefined, 'nothing of it is pruned');
});

test('own: beside an operator that writes other files we stop after one try per change, and say who it is', async () => {
  const operator = new OperatorStandIn(plane, (images) => [{ path: '/etc/theirs', text: images.join() }]);
  operator.start(150);
  const process = cluster.reconciler('own');
  try {
    await soon(() => cluster.condition('Contested', STATUS), 'True AnotherWriter');
    const [writes, theirs] = await settled(process, operator);
    assert.ok(writes <= 12, `${writes} writes until we gave in, the report and its events included`);
    await rounds(operator, 25);
    assert.equal(await process.writes(), writes, 'we write nothing while it goes on');
    assert.equal(operator.writes, theirs, 'and it has nothing to correct');
    assert.ok(theirs <= 3, `it had to correct ${theirs} times`);
    assert.equal(await cluster.verdict('pool worker'), 'Rejected Contested');
    await cluster.entries('docker.io', 'registry.example.com');
    await soon(() => cluster.file(), /registry\.example\.com/);
    await rounds(operator, 25);
    assert.ok(operator.writes - theirs <= 3, `it had to correct ${operator.writes - theirs} times`);
    assert.equal(await cluster.file(), 'docker.io,registry.example.com');
    await soon(() => cluster.condition('Contested', STATUS), 'True AnotherWriter');
  } catch (error) {
    await process.stop();
    throw error;
  } finally {
    await operator.stop();
  }
  // The operator is gone, so the next change of the entries is rendered again.
  await cluster.entries('docker.io');
  await soon(() => cluster.file(), /crio-credential-provider/);
  await soon(() => cluster.condition('Contested', STATUS), 'absent');
  assert.equal(await process.stop(), 0);
});

test.lastly('the control plane stops', () => plane.stop());
