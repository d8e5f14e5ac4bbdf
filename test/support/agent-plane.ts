/** Node agents that speak with an API server, with exactly the rights of the charts. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { redact } from '../../runtime/core/redacted.ts';
import { agentRbac } from '../../runtime/global-pull-secret/daemon-set.ts';
import { judgedMark } from '../../runtime/global-pull-secret/removal-guard.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import type { Rule, User } from '../control-plane/users.ts';
import { pullSecretObject } from './meta.ts';

export interface AgentAccount {
  readonly user: User;
  /** Flag with the paths of the token and the address of the API server. */
  readonly flag: string;
  readonly env: NodeJS.ProcessEnv;
}

export async function agentAccount(
  plane: ControlPlane,
  options: Parameters<typeof agentRbac>[0] = {},
): Promise<AgentAccount> {
  const rulesOf = (kind: string): readonly Rule[] =>
    agentRbac(options)
      .filter((one) => one.kind === kind && one.metadata.namespace !== 'openshift-config')
      .flatMap((one) => one['rules'] as readonly Rule[]);
  const user = await plane.user({
    name: 'agent',
    by: 'token',
    cluster: rulesOf('ClusterRole'),
    namespaces: { 'kube-system': rulesOf('Role') },
  });
  const folder = join(plane.folder, 'account');
  mkdirSync(folder);
  writeFileSync(join(folder, 'ca.crt'), plane.ca);
  symlinkSync(user.tokenFile, join(folder, 'token'));
  const { port } = new URL(plane.server);
  return {
    user,
    flag: `--service-account-dir=${folder}`,
    env: { ...process.env, KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: port },
  };
}

/** A Secret that agents watch. `judged`: with the reconciler's mark. */
export function agentSecret(name: string, content: string, judged = true): TestObject {
  const object = pullSecretObject({ name, namespace: 'kube-system' }, content);
  const mark = judged ? { 'pullwright-judged': btoa(judgedMark(redact(content))) } : {};
  return { ...object, data: { ...object.data, ...mark } };
}
