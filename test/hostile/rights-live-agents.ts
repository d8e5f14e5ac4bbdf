/** A stolen token of an account that deploys the agent: it can write only the rendered agent, all else is denied. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { pullStatusCrd } from '../../runtime/core/kubernetes/pull-status-kind.ts';
import { agentDaemonSet, agentRbac } from '../../runtime/global-pull-secret/daemon-set.ts';
import { parseOptions } from '../../runtime/global-pull-secret/options.ts';
import type { Answer } from '../control-plane/request.ts';
import { IMAGE } from './rights-fleets.ts';

type Json = { [key: string]: unknown };
/** Spec of a pod template, loosely typed for attacks. */
type Spec = Json & { containers: Json[]; volumes: Json[] };

/** Access of the thief with the token. */
export interface Thief {
  readonly apply: (path: string, object: object, query?: string) => Promise<Answer>;
  /** One field after another; what is let through is what the list of that name says. */
  readonly walk: (
    list: string,
    document: string,
    kind: string,
    path: string,
    object: object,
  ) => Promise<void>;
  /** Until the policy was taken in. */
  readonly refused: (text: RegExp, ask: (query: string) => Promise<Answer>) => Promise<void>;
}

const DAEMON_SETS = '/apis/apps/v1/namespaces/kube-system/daemonsets';
const AGENT = parseOptions({ agent: { image: IMAGE } })('local').agent;
const NAME = 'global-pull-secret-syncer';
const ADMIN = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' };

const POLICY = /ValidatingAdmissionPolicy 'pullwright-reconciler-agents'/;

/** Changes of the agent's DaemonSet pod that would give root on nodes. */
const STOLEN: Readonly<Record<string, (spec: Spec, agent: Json) => void>> = {
  'another image': (_, agent) => (agent['image'] = 'registry.example.com/evil'),
  'an older image of ours': (_, agent) => (agent['image'] = IMAGE.replace(/:[^:]*$/, ':0.0.9')),
  'an image that begins like ours': (_, agent) => (agent['image'] = 'registry.example.com/pullwright-evil:1'),
  'another program of it': (_, agent) => (agent['command'] = ['/bin/sh', '-c', 'id']),
  'another command of it': (_, agent) =>
    (agent['command'] = ['/usr/bin/pullwright', 'reconcile', '--kubeconfig=/x']),
  'another file': (_, agent) => (agent['command'] as string[]).push('--file=/var/lib/kubelet/pki/x'),
  'a folder where the program lies': (_, agent) =>
    (agent['volumeMounts'] as Json[]).push({ name: 'kubelet-config', mountPath: '/usr/bin' }),
  'a part of a folder': (_, agent) =>
    Object.assign((agent['volumeMounts'] as Json[])[0] ?? {}, { subPath: 'pods' }),
  'a variable of its own with a value': (_, agent) =>
    (agent['env'] = [{ name: 'NODE_NAME', value: 'other' }]),
};

/** Adds its tests to a suite. */
export function agentThefts(test: (name: string, body: () => Promise<void>) => void, thief: Thief): void {
  const ours = agentDaemonSet(AGENT);
  test('sets no field of the agent but those of the list', async () => {
    await thief.walk(
      'agent',
      '/openapi/v3/apis/apps/v1',
      'io.k8s.api.apps.v1.DaemonSet',
      `${DAEMON_SETS}/${NAME}`,
      ours,
    );
  });

  test('brings the agent to nodes as it is rendered', async () => {
    const made = await thief.apply(`${DAEMON_SETS}/${NAME}`, ours);
    assert.ok(made.status === 200 || made.status === 201, made.body.message);
  });

  for (const [what, change] of Object.entries(STOLEN))
    test(`does not give the agent ${what}`, async () => {
      const evil = structuredClone(ours) as KubeObject & { spec: { template: { spec: Spec } } };
      const { spec } = evil.spec.template;
      change(spec, spec.containers[0] ?? {});
      await thief.refused(POLICY, (query) => thief.apply(`${DAEMON_SETS}/${NAME}`, evil, query));
    });

  const rbac = (kind: string): KubeObject => {
    const found = agentRbac({}).find((object) => object.kind === kind);
    assert.ok(found !== undefined);
    return found;
  };
  const at = (plural: string, namespaced: boolean): string =>
    `/apis/rbac.authorization.k8s.io/v1/${namespaced ? 'namespaces/kube-system/' : ''}${plural}/${NAME}`;

  test('binds only the role of the agents, and to no other account', async () => {
    const binding = rbac('RoleBinding');
    const role = await thief.apply(at('roles', true), rbac('Role'));
    assert.ok(role.status === 200 || role.status === 201, role.body.message);
    const made = await thief.apply(at('rolebindings', true), binding);
    assert.ok(made.status === 200 || made.status === 201, made.body.message);
    const users = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'thief' }];
    const others = [{ kind: 'ServiceAccount', name: 'default', namespace: 'kube-system' }];
    // A role whose rights it has: RBAC alone would let it give those to anybody.
    const own = { ...ADMIN, name: 'pullwright-pull-secret-injection' };
    for (const change of [{ subjects: users }, { subjects: others }])
      await thief.refused(/may bind only the role/, (query) =>
        thief.apply(at('rolebindings', true), { ...binding, ...change }, query),
      );
    await thief.refused(/may bind only the role|cannot change roleRef/, (query) =>
      thief.apply(
        at('clusterrolebindings', false),
        { ...rbac('ClusterRoleBinding'), roleRef: own, subjects: others },
        query,
      ),
    );
  });

  test('gives the agents no right but those that are rendered', async () => {
    for (const rule of [
      { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list'] },
      { apiGroups: [''], resources: ['secrets'], verbs: ['list'] },
      { apiGroups: [''], resources: ['secrets'], resourceNames: ['a'], verbs: ['patch'] },
    ])
      await thief.refused(/may grant the agent only the rendered permissions/, (query) =>
        thief.apply(at('clusterroles', false), { ...rbac('ClusterRole'), rules: [rule] }, query),
      );
  });

  test('sends no kind through a webhook that converts it', async () => {
    const crd = pullStatusCrd();
    const clientConfig = { url: 'https://evil.example.com/' };
    const conversion = { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1'] } };
    await thief.refused(/cannot patch resource .customresourcedefinitions/, (query) =>
      thief.apply(
        `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd.metadata.name}`,
        { ...crd, spec: { ...(crd.spec as object), conversion } },
        query,
      ),
    );
  });
}
