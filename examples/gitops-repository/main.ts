/**
 * A GitOps repository of one's own: constructs composed in TypeScript, written as one file per object.
 *
 *   npm run synth     writes ./manifests
 *   npm run check     exits 1 when ./manifests is not what this file says
 */

import {
  ArgoApplication,
  compareTree,
  GlobalPullSecret,
  type ManifestTree,
  ObjectGroup,
  PullSecret,
  pullStatusCrd,
  Reconciler,
  renderTree,
  writeTree,
} from '@pullwright/charts';
import { App, Chart } from 'cdk8s';
import { k8s } from 'cdk8s-plus-28';

const IMAGE = 'registry.example.com/pullwright/pullwright:0.1.0';
const REPOSITORY = 'https://git.example.com/team-a/clusters.git';

/** The cluster of team A: its nodes get the team's registries beside the platform's. */
export class TeamCluster extends Chart {
  readonly credentials: PullSecret;

  constructor(
    app: App,
    name: string,
    props: { readonly store: string; readonly restart?: 'on-change' | 'never' },
  ) {
    super(app, name, { disableResourceNameHashes: true });
    new ObjectGroup(this, 'crds', [pullStatusCrd()]);
    new GlobalPullSecret(this, 'sync', {
      image: IMAGE,
      enforce: 'deny',
      agent: { restart: props.restart ?? 'never', restartWindow: '10m' },
    });
    // Merges, labels nodes and reports; with the rights for exactly this.
    new Reconciler(this, 'reconciler', { image: IMAGE, systems: { 'global-pull-secret': {} } });
    // A reference: the store holds the credential, git never does.
    this.credentials = new PullSecret(this, 'credentials', {
      namespace: 'kube-system',
      name: 'additional-pull-secret',
      source: { externalSecret: { store: props.store, key: `registries/${name}` } },
    });
    // Objects of one's own, typed by cdk8s-plus, stand beside ours: who is on call may read this Secret, and no other.
    const onCall = { namespace: 'kube-system', name: 'pull-secret-on-call' };
    new k8s.KubeRole(this, 'on-call', {
      metadata: onCall,
      rules: [this.credentials.readRule() as k8s.PolicyRule],
    });
    new k8s.KubeRoleBinding(this, 'on-call-binding', {
      metadata: onCall,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: onCall.name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'team-a-on-call' }],
    });
  }
}

/** Everything of this repository, as files. */
export function tree(): ManifestTree {
  const files = new Map<string, string>();
  for (const [name, store] of [
    ['team-a-prod', 'vault-prod'],
    ['team-a-stage', 'vault-stage'],
  ] as const) {
    // One App per cluster: what is looked at is only ever one cluster.
    const chart = new TeamCluster(new App(), name, {
      store,
      restart: name.endsWith('prod') ? 'never' : 'on-change',
    });
    for (const [path, text] of renderTree(chart.toJson(), { folder: name })) files.set(path, text);
  }
  const hub = new Chart(new App(), 'hub');
  for (const name of ['team-a-prod', 'team-a-stage'])
    new ArgoApplication(hub, name, {
      name,
      repository: REPOSITORY,
      paths: [`manifests/${name}`, `manifests/${name}/overlays/external-secrets.io`],
      destination: { name },
    });
  for (const [path, text] of renderTree(hub.toJson(), { folder: 'hub', flat: true })) files.set(path, text);
  return files;
}

if (import.meta.main) {
  const folder = new URL('manifests', import.meta.url).pathname;
  if (process.argv.includes('--check')) {
    const { added, changed, stale } = compareTree(folder, tree());
    for (const path of [...added, ...changed, ...stale]) process.stdout.write(`${path}\n`);
    process.exitCode = added.length + changed.length + stale.length > 0 ? 1 : 0;
  } else writeTree(folder, tree());
}
