// deadline: 600 s
// needs: control plane
/**
 * Command blocks of the documents run as printed, in the order of their page, on a real API server. A block that cannot run here
 * says why, and other tests run the walks through whole programs. Of the runbooks every command runs that reads an API server.
 */
import assert from 'node:assert/strict';
import { copyFileSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PULL_STATUS } from '../../runtime/core/kubernetes/pull-status.ts';
import { controlPlaneBinaries } from '../control-plane/build.ts';
import { controlPlane } from '../control-plane/live.ts';
import { type DocBlock, docBlocks, putPullwright, runBlock } from '../support/doc-blocks.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = new URL('../..', import.meta.url).pathname;
const IMAGE = 'registry.example.com/pullwright/pullwright:0.1.0';

/** Headings whose blocks other tests run, by page. */
const ELSEWHERE: Readonly<Record<string, readonly [heading: RegExp, by: string]>> = {
  'docs/first-steps.md': [/./, 'test/docs/first-steps.test.ts'],
  'docs/install.md': [/./, 'test/docs/install.test.ts'],
  'docs/gitops.md': [/^(Argo CD|Flux)/, 'test/gitops/steps.ts'],
  'docs/olm.md': [/^Operator/, 'test/olm/bundle.test.ts'],
  'docs/operations.md': [/^Out of/, 'test/gitops/steps.ts'],
  'docs/pull-secret-injection.md': [/^(Example|Who changes the pod)$/, 'test/node/injection-webhook.ts'],
  'docs/registry-overrides.md': [/^(\d\. |Where an image comes from)/, 'test/docs/disconnected.test.ts'],
};

/** Pages that are run here. */
const HERE = [
  'troubleshooting',
  'credential-provider',
  'global-pull-secret',
  'operations',
  'pull-secret-adapter',
  'pull-secret-injection',
].map((name) => `docs/${name}.md`);

const REASONS =
  /^(needs (a|Helm|OpenShift|your names)|downloads packages|runs |first steps run it|writes to|belongs to)/;

function isElsewhere(page: string, { heading }: DocBlock): boolean {
  return ELSEWHERE[page]?.[0].test(heading) === true;
}

test('every command block is run by a test or says why it is not', () => {
  for (const page of ['README.md', 'SECURITY.md', ...globSync('docs/*.md', { cwd: root })])
    for (const block of docBlocks(page).filter(({ language }) => ['sh', 'console'].includes(language))) {
      if (block.skipped === undefined)
        assert.ok(isElsewhere(page, block) || HERE.includes(page), `${page}: ${block.text}`);
      else assert.match(block.skipped, REASONS, page);
    }
  for (const [page, [, by]] of Object.entries(ELSEWHERE))
    assert.ok(readFileSync(join(root, by), 'utf8').includes(page), `${by} does not run ${page}`);
});

const pullSecret = (host: string): string =>
  JSON.stringify({ auths: { [host]: { auth: 'cm9ib3Q6cGFzcw==' } } });

/** A Deployment that pulls, and its Secret. */
const API = `apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Secret
    metadata: { name: registry, namespace: payments }
    type: kubernetes.io/dockerconfigjson
    stringData: { .dockerconfigjson: '${pullSecret('registry.example.com')}' }
  - apiVersion: apps/v1
    kind: Deployment
    metadata: { name: api, namespace: payments }
    spec:
      selector: { matchLabels: { app: api } }
      template:
        metadata: { labels: { app: api } }
        spec:
          imagePullSecrets: [{ name: registry }]
          containers: [{ name: api, image: registry.example.com/payments/api:1.4.2 }]
`;
const FILES: Readonly<Record<string, string>> = {
  'config.json': pullSecret('quay.io'),
  'mirror.json': pullSecret('quay.io'),
  'pull-secret.json': pullSecret('quay.io'),
  'dump/api.yaml': API,
  'additional-pull-secret.yaml': `apiVersion: v1
kind: Secret
metadata: { name: additional-pull-secret, namespace: kube-system }
type: kubernetes.io/dockerconfigjson
stringData: { .dockerconfigjson: '${pullSecret('quay.io/team')}' }
`,
  'mirror-sets/idms.yaml': `apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata: { name: quay }
spec: { imageDigestMirrors: [{ source: quay.io/team, mirrors: [mirror.example.com/team] }] }
`,
};
const NAMESPACES = ['clusters-prod', 'hyperfleet-system', 'payments', 'team-a'];
const plane = await controlPlane({ controllerManager: true });
const work = tempFolder();
const bin = join(work, '.bin');
const env = {
  PATH: `${bin}:${dirname(process.execPath)}`,
  HOME: work,
  KUBECONFIG: join(work, 'kubeconfig.yaml'),
};
const run = (commands: string) => runBlock(commands, work, env);
/** The fleet that the YAML before a block declares, as the page tells to render it. */
const render = (clusters: string): Promise<unknown> => {
  writeFileSync(join(work, 'fleet.yaml'), `image: ${IMAGE}\n${clusters}`);
  return run('pullwright synth --fleet fleet.yaml --to manifests');
};

test('the stage', async () => {
  putPullwright(bin);
  symlinkSync((await controlPlaneBinaries()).kubectl, join(bin, 'kubectl'));
  symlinkSync(join(root, 'examples'), join(work, 'examples'));
  symlinkSync(join(root, 'main.ts'), join(work, 'main.ts'));
  for (const [name, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(work, name)), { recursive: true });
    writeFileSync(join(work, name), text);
  }
  copyFileSync(plane.kubeconfig, env.KUBECONFIG);
  copyFileSync(plane.kubeconfig, join(work, 'admin.kubeconfig'));
  await run('kubectl config rename-context "$(kubectl config current-context)" prod');
  await run(NAMESPACES.map((name) => `kubectl create namespace ${name}`).join('\n'));
  await run('kubectl -n hyperfleet-system create configmap cluster-cls-123-pullsecret-places');
  await run('kubectl apply -f dump/api.yaml');
  await render(
    'clusters: [{ name: prod, systems: { global-pull-secret: { createConfigNamespace: true } } }]\n',
  );
});

for (const page of HERE)
  test(page, async () => {
    for (const block of docBlocks(page)) {
      if (block.language === 'yaml' && block.text.startsWith('clusters:')) await render(block.text);
      const isRun = block.skipped === undefined && !isElsewhere(page, block);
      if (isRun && block.language === 'sh') await run(block.text);
    }
  });

/** Inputs of a runbook's command besides the API server. */
const BESIDES =
  /\b(journalctl|crictl|curl|rabbitmqadmin) | logs |\/proxy\/|pullwright (verify|mirrors .*--probe)|pullwright status /;

/** Names that runbooks leave to their reader. */
const READERS: readonly (readonly [string, string])[] = [
  ['NAMESPACE-NAME', 'clusters-prod'],
  ['NAMESPACE', 'clusters'],
  ['-NAME', '-prod'],
  ['IMAGE', 'registry.example.com/payments/api:1.4.2'],
];

/** State at an alert: PullStatuses with the verdicts that the runbooks query. */
const ALERTED = [
  ...[
    ['kube-system', 'Secret', 'original-pull-secret'],
    ['kube-system', 'Secret', 'additional-pull-secret'],
    ['kube-system', 'Secret', 'credential-provider-node-a'],
    ['openshift-config', 'CRIOCredentialProviderConfig', 'cluster'],
    ['clusters', 'HostedCluster', 'prod'],
    ['clusters', 'PodList', 'clusters'],
    ['pullwright-system', 'Secret', 'hosted-clusters'],
  ].map(([namespace, kind = '', name]) => ({
    apiVersion: PULL_STATUS.apiVersion,
    kind: 'PullStatus',
    metadata: { name: `${kind.toLowerCase()}-${name}`, namespace, labels: { planted: 'status' } },
    status: {
      about: { apiVersion: 'v1', kind, name },
      verdicts: ['Contested', 'CatalogImageMissing'].map((reason) => ({
        subject: 'quay.io',
        verdict: 'Rejected',
        reason,
        message: 'planted',
      })),
    },
  })),
  ...[
    ['kube-system', 'name=global-pull-secret-syncer'],
    ['pullwright-system', 'app.kubernetes.io/name=pullwright-verify'],
    ['pullwright-system', 'app.kubernetes.io/name=pullwright-reconciler'],
    ['hyperfleet-system', 'hyperfleet.io/adapter=pullsecret'],
  ].map(([namespace, label = '']) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: label.replace(/.*=/, ''), namespace, labels: Object.fromEntries([label.split('=')]) },
    spec: {
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'main',
          image: 'registry.example.com/main:1',
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        },
      ],
    },
  })),
  {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'pullwright-reconciler', namespace: 'pullwright-system' },
  },
  {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'alert', namespace: 'default' },
    involvedObject: {},
    reportingComponent: 'pullwright.dev/reconciler',
    type: 'Warning',
  },
];

test('the stage of the runbooks', async () => {
  for (const namespace of ['clusters', 'pullwright-system', 'openshift-config'])
    await run(`kubectl get namespace ${namespace} || kubectl create namespace ${namespace}`);
  await run(
    'kubectl -n clusters-prod create deployment ignition-server --image registry.example.com/ignition',
  );
  await run('kubectl apply --server-side -k manifests/prod/crds');
  writeFileSync(
    join(work, 'alerted.json'),
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: ALERTED }),
  );
  for (const rest of ['', ' --subresource status -l planted=status'])
    await run(`kubectl apply --server-side -f alerted.json${rest}`);
});

for (const page of globSync('docs/runbooks/*.md', { cwd: root }))
  test(page, async () => {
    const commands = docBlocks(page).flatMap(({ text }) => text.trim().split(/(?<![|\\])\n/));
    for (const command of commands.filter((one) => !BESIDES.test(one))) {
      const { stdout } = await run(READERS.reduce((text, [from, to]) => text.replaceAll(from, to), command));
      assert.notEqual(stdout, '', command);
    }
  });
