/**
 * A pod that pulls by a mirror on a real node laid out as OpenShift's: with our credential provider, with the original, and with a
 * Secret of its own, in turn. The image is on the node from the first round on, so that what differs is the provider's run.
 */
import { namespaceAccess, nodeAccess } from '../runtime/credential-provider/access.ts';
import { executableMachineConfigs } from '../runtime/credential-provider/objects.ts';
import { eventually } from '../test/control-plane/eventually.ts';
import type { TestObject } from '../test/control-plane/resource-path.ts';
import { rollPool } from '../test/node/machine/machine-configs.ts';
import { NodeMachine } from '../test/node/machine/node.ts';
import { furnish, kubeletConfig, OPERATOR_CRDS, WORKER_POOL } from '../test/node/machine/plugins.ts';
import { IMAGE, pullSecretOf, pushProduct } from '../test/node/machine/product.ts';
import { Journey, onNode, ROUNDS } from './journey.ts';
import type { Row } from './measure.ts';

const UNIT = 'pullwright-credential-provider.service';
const MIRROR = 'mirror.example.com';
const BY_MIRROR = 'quay.example.com/acme/web:1';

await onNode(import.meta.filename, 'a pod by a mirror: from the apply until it runs', async () => {
  const node = await NodeMachine.start({
    layout: 'openshift',
    registries: { [MIRROR]: 'mirror' },
    crds: OPERATOR_CRDS,
  });
  try {
    return await measure(new Journey(node));
  } finally {
    await node.stop();
  }
});

async function measure(journey: Journey): Promise<readonly Row[]> {
  const { node } = journey;
  const unit = (what: 'start' | 'stop'): string => node.run('/usr/bin/systemctl', what, UNIT);
  await install(journey);
  await eventually(() => node.run('/usr/bin/systemctl', 'is-active', UNIT));
  for (let round = 0; round <= ROUNDS; round += 1) {
    if (round === 1) journey.begin();
    await journey.timed('given', () => journey.pod('team-b', `${MIRROR}/acme/web:1`, 'given'));
    await journey.timed('ours', () => journey.pod('team-a', BY_MIRROR));
    unit('stop');
    await journey.timed('original', () => journey.pod('team-a', BY_MIRROR));
    unit('start');
  }
  return [
    journey.row('our provider', 'ours', 'given'),
    journey.row('the original provider', 'original', 'given'),
    journey.row('our provider beside the original', 'ours', 'original'),
  ];
}

async function install(journey: Journey): Promise<void> {
  const { node } = journey;
  const auth = node.registry(MIRROR).config();
  node.image(MIRROR, 'acme/web', '1');
  furnish(node);
  await pushProduct(node);
  const own = executableMachineConfigs({ pools: ['worker'], image: IMAGE }) as readonly TestObject[];
  for (const object of [WORKER_POOL, kubeletConfig(), ...own]) await journey.apply(object);
  await rollPool(node);
  for (const name of ['team-a', 'team-b'])
    await journey.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  for (const object of [...nodeAccess(), ...namespaceAccess({ namespace: 'team-a' })])
    await journey.apply(object);
  await journey.apply(pullSecretOf('team-a', 'mirror', auth));
  await journey.apply(pullSecretOf('team-b', 'given', auth));
}
