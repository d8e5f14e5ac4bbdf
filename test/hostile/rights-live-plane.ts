/** A control plane with everything of ours, and requests by tokens that were stolen there. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type FleetInput, readFleet, renderFleet, writeTree } from '../../charts/mod.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { type Requester, requester } from '../control-plane/request.ts';
import { adapterSection, hub, IMAGE } from './rights-fleets.ts';

/** Everything of both kinds of cluster in one. */
export async function furnish(plane: ControlPlane, folder: string): Promise<void> {
  for (const name of ['openshift-config', 'clusters', 'clusters-guest'])
    await plane.client.request('POST', '/api/v1/namespaces', { metadata: { name } });
  const trees: FleetInput[] = [
    hub,
    {
      image: IMAGE,
      clusters: [
        {
          name: 'alone',
          path: '.',
          delivery: 'reconciler',
          systems: {
            'global-pull-secret': {},
            'pull-secret-injection': {},
            'credential-provider': {},
            ...adapterSection,
          },
        },
      ],
    },
  ];
  for (const [index, fleet] of trees.entries()) {
    const place = join(folder, `live-${index}`);
    writeTree(place, renderFleet(readFleet(fleet)).tree);
    const kustomization = index === 0 ? join(place, 'hub') : place;
    const applied = await plane.kubectl('apply', '--server-side', '--force-conflicts', '-k', kustomization);
    assert.equal(applied.code, 0, applied.stderr);
  }
}

/**
 * Requests as that account.
 *
 * @param as whom it says to be
 */
export async function stolenToken(
  plane: ControlPlane,
  namespace: string,
  name: string,
  as?: string,
): Promise<Requester> {
  const kubeconfig = parse(readFileSync(await plane.account(namespace, name), 'utf8'));
  const token: string =
    kubeconfig.users[0].user.token ?? readFileSync(kubeconfig.users[0].user.tokenFile, 'utf8');
  return requester({ server: plane.server, ca: plane.ca, token, ...(as === undefined ? {} : { as }) });
}
