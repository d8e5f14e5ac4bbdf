/**
 * Journeys on a real node with everything as shipped and with default options: from the tenant's apply to the running pod, beside
 * a pod that had its Secret from the start, in the same rounds. As root on Linux, see docs/contributing.md.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../test/control-plane/eventually.ts';
import { NodeMachine } from '../test/node/machine/node.ts';
import {
  grantImage,
  ok,
  pullSecretOf,
  pushProduct,
  TEAM_FLEET,
  TEAM_PROFILE,
  workFolder,
} from '../test/node/machine/product.ts';
import { grantObject } from '../test/pull-secret-injection/live.ts';
import { Journey, onNode, ROUNDS } from './journey.ts';
import type { Row } from './measure.ts';

const CONFIG = '/var/lib/kubelet/config.json';
const JOURNAL = '/var/lib/kubelet/.pullwright/journal.json';
const TENANT = 'quay.example.com';
const TEAM = 'team.example.com';

await onNode(import.meta.filename, 'journeys: from the apply to the running pod', async () => {
  const node = await NodeMachine.start({ registries: { [TENANT]: 'tenant', [TEAM]: 'robot' } });
  try {
    return await measure(new Journey(node));
  } finally {
    await node.stop();
  }
});

async function measure(journey: Journey): Promise<readonly Row[]> {
  await install(journey);
  for (let round = 0; round <= ROUNDS; round += 1) {
    if (round === 1) journey.begin();
    await oneRound(journey, round);
  }
  return [
    journey.row("the tenant's Secret and its pod", 'tenant', 'given'),
    journey.row('a rotation and a new pod', 'rotation', 'given'),
    journey.row('a pod that had its Secret, while the kubelet is restarted', 'restarted', 'given'),
    journey.row("the tenant's Secret and its pod, beside such a restart", 'tenant', 'restarted'),
    journey.row('a rotation and a new pod, beside such a restart', 'rotation', 'restarted'),
    journey.row('a new namespace and its pod', 'namespace', 'given, new namespace'),
  ];
}

async function install(journey: Journey): Promise<void> {
  const { node } = journey;
  for (const host of [TENANT, TEAM]) node.image(host, 'acme/web', '1');
  await pushProduct(node);
  await grantImage(node);
  writeFileSync(join(workFolder(node), 'fleet.yaml'), TEAM_FLEET);
  writeFileSync(join(workFolder(node), 'profile.yaml'), TEAM_PROFILE);
  await ok(
    node,
    `pullwright synth --fleet fleet.yaml --to manifests
     kubectl apply --server-side -k manifests/prod
     kubectl create namespace platform
     kubectl create namespace team-start
     kubectl label namespace team-start registry=team
     until kubectl apply -f profile.yaml; do sleep 1; done`,
  );
  const robot = pullSecretOf('platform', 'robot', node.registry(TEAM).config());
  await journey.apply(robot);
  await journey.apply(grantObject('platform', ['robot'], ['team-*']));
  const platform = pullSecretOf(
    'openshift-config',
    'pull-secret',
    node.registry('registry.example.com').config(),
  );
  await journey.apply(platform);
  await inOrder(journey);
}

/** Each journey once, in turn with the pod that had its Secret from the start. */
async function oneRound(journey: Journey, round: number): Promise<void> {
  const { node } = journey;
  const given = async (): Promise<void> => {
    await journey.apply(pullSecretOf('default', 'given', node.registry(TEAM).config()));
    await journey.pod('default', `${TEAM}/acme/web:1`, 'given');
  };
  const tenant = async (password: string): Promise<void> => {
    const text = node.registry(TENANT).config(TENANT, password);
    await journey.apply(pullSecretOf('kube-system', 'additional-pull-secret', text));
    await journey.pod('default', `${TENANT}/acme/web:1`);
  };
  await withoutTenant(journey);
  await takePassword(journey, `first-${round}`);
  await journey.timed('given', given);
  await journey.timed('tenant', () => tenant(`first-${round}`));
  await inOrder(journey);
  await node.ready();
  await journey.timed('restarted', async () => {
    node.run('/usr/bin/systemctl', 'restart', '--no-block', 'kubelet.service');
    await given();
  });
  await takePassword(journey, `second-${round}`);
  await journey.timed('rotation', () => tenant(`second-${round}`));
  await journey.timed('given, new namespace', () => namespace(journey, `own-${round}`, {}));
  await journey.timed('namespace', () => namespace(journey, `team-${round}`, { registry: 'team' }));
}

/** The kubelet has forgotten the tenant by the end of it, and the agent how often it was restarted for this bench. */
async function withoutTenant(journey: Journey): Promise<void> {
  const { node } = journey;
  const before = node.invocation();
  const had = readFileSync(CONFIG, 'utf8').includes(TENANT);
  await node.plane.remove(pullSecretOf('kube-system', 'additional-pull-secret', '{}'));
  await eventually(
    () => {
      if (readFileSync(CONFIG, 'utf8').includes(TENANT) || (had && node.invocation() === before))
        throw new Error('the tenant is not removed yet');
    },
    { withinMs: 120_000 },
  );
  await inOrder(journey);
  node.run('/usr/bin/systemctl', 'stop', 'kubelet.service');
  node.system.kill(/pullwright agent/);
  const stored = JSON.parse(readFileSync(JOURNAL, 'utf8')) as { readonly journal: object };
  writeFileSync(JOURNAL, JSON.stringify({ ...stored, journal: { ...stored.journal, restarts: [] } }));
  const since = Date.now();
  node.run('/usr/bin/systemctl', 'start', 'kubelet.service');
  await node.ready(since);
  await inOrder(journey);
}

/** The tenant's registry takes this password alone from now on. */
async function takePassword(journey: Journey, password: string): Promise<void> {
  const registry = journey.node.registry(TENANT);
  await registry.stop();
  registry.setPassword(password);
  await registry.start();
  await inOrder(journey);
}

async function namespace(
  journey: Journey,
  name: string,
  labels: Readonly<Record<string, string>>,
): Promise<void> {
  await journey.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
  const own = labels['registry'] === undefined;
  if (own) await journey.apply(pullSecretOf(name, 'given', journey.node.registry(TEAM).config()));
  await journey.pod(name, `${TEAM}/acme/web:1`, own ? 'given' : undefined);
}

async function inOrder({ node }: Journey): Promise<void> {
  await eventually(() => ok(node, 'pullwright status'), { withinMs: 120_000, everyMs: 250 });
}
