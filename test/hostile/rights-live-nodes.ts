/** A stolen token of a pod on one node: what it says is of that node alone. */
import assert from 'node:assert/strict';
import { installerObjects } from '../../charts/credential-provider/installer.ts';
import { agentBounds, agentRbac } from '../../runtime/global-pull-secret/daemon-set.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import { requester } from '../control-plane/request.ts';
import { meta } from '../support/meta.ts';
import { IMAGE } from './rights-fleets.ts';

const STATUSES = '/apis/pullwright.dev/v1alpha1/namespaces/kube-system/pullstatuses';
const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events';
const REFUSED = /the agent of a node may report only on that node/;

/** A token as the kubelet asks for it: it is bound to a pod on the node. */
async function podToken(plane: ControlPlane, account: string, nodeName: string): Promise<string> {
  const spec = { serviceAccountName: account, nodeName, containers: [{ name: 'a', image: 'a' }] };
  const metadata = { name: `on-${nodeName}-${account}`, namespace: 'kube-system' };
  const { uid } = (await plane.apply({ apiVersion: 'v1', kind: 'Pod', metadata, spec })).metadata as {
    uid?: string;
  };
  const { status, body } = await plane.client.request(
    'POST',
    `/api/v1/namespaces/kube-system/serviceaccounts/${account}/token`,
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: metadata.name, uid } },
    },
  );
  assert.equal(status, 201, JSON.stringify(body));
  return body.status.token as string;
}

const ACCOUNTS = [
  { account: 'global-pull-secret-syncer', status: 'node', reason: 'KubeletRestarted', pods: false },
  {
    account: 'credential-provider-installer',
    status: 'credential-provider-node',
    reason: 'CredentialProviderFailed',
    pods: true,
  },
] as const;

/** Adds its tests to a suite. */
export function nodeThefts(
  test: (name: string, body: () => Promise<void>) => void,
  plane: ControlPlane,
): void {
  for (const { account, status, reason, pods } of ACCOUNTS)
    test(`of a pod of ${account} reports on its node alone`, async () => {
      for (const object of [
        ...agentRbac({}),
        ...agentBounds({}),
        ...installerObjects({ image: IMAGE, report: true }),
      ])
        if (object.kind !== 'DaemonSet') await plane.apply(object);
      await plane.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-1' } });
      const token = await podToken(plane, account, 'worker-1');
      const pod = requester({ server: plane.server, ca: plane.ca, token });
      const asPod = async (path: string, body: object): Promise<string> => {
        const answer = await pod.request(
          'PATCH',
          `${path}?fieldManager=thief&force=true&dryRun=All`,
          body,
          'application/apply-patch+yaml',
        );
        return answer.status < 300 ? 'allowed' : JSON.stringify(answer.body);
      };
      const statusOf = (name: string): Promise<string> =>
        asPod(
          `${STATUSES}/${name}`,
          meta('pullwright.dev/v1alpha1 PullStatus', { name, namespace: 'kube-system' }),
        );
      const eventOn = (kind: string, name: string, change: object = {}): Promise<string> =>
        asPod(`${EVENTS}/e-${name}`, {
          ...meta('events.k8s.io/v1 Event', { name: `e-${name}`, namespace: 'default' }),
          eventTime: '2026-01-01T00:00:00.000000Z',
          reportingController: 'a',
          reportingInstance: 'worker-1',
          action: 'c',
          reason,
          type: 'Normal',
          regarding: { apiVersion: 'v1', kind, name, namespace: 'default' },
          ...change,
        });
      await eventually(async () => assert.match(await statusOf(`${status}-worker-2`), REFUSED));
      await eventually(async () => assert.equal(await statusOf(`${status}-worker-1`), 'allowed'));
      assert.match(await statusOf('secret-additional-pull-secret'), REFUSED);
      assert.match(await eventOn('Node', 'worker-2'), REFUSED);
      assert.match(await eventOn('Node', 'worker-1', { reportingInstance: 'worker-2' }), REFUSED);
      assert.match(await eventOn('Pod', 'a', { reason: 'KubeletRestarted' }), REFUSED);
      assert.match(await eventOn('Pod', 'a', { reportingInstance: 'worker-2' }), REFUSED);
      assert.match(await eventOn('ServiceAccount', 'a'), REFUSED);
      const [onPod, onNode] = [await eventOn('Pod', 'a'), await eventOn('Node', 'worker-1')];
      assert.equal(onNode, 'allowed');
      if (pods) assert.equal(onPod, 'allowed');
      else assert.match(onPod, REFUSED);
      pod.close();
    });
}
