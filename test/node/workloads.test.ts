// deadline: 600 s
// needs: node
/**
 * Every workload that a fleet renders, on a real node from the image that users get: pushed by the documented commands to a
 * registry with a password, pulled with the fleet's `imagePullSecrets`, started with the rendered security context. Each
 * container becomes ready, and pods of Jobs complete or fail as documented.
 */
import assert from 'node:assert/strict';
import { startRabbitMq } from '../brokers/rabbitmq-node.ts';
import { Authority } from '../control-plane/x509.ts';
import { HyperfleetDouble } from '../pull-secret-adapter/doubles/hyperfleet-api.ts';
import { SecretManagerDouble } from '../pull-secret-adapter/doubles/secret-manager.ts';
import { pullSecret } from '../pull-secret-adapter/run-job.ts';
import { test } from '../support/suite.ts';
import { ADDRESS } from './machine/joining.ts';
import { Journey } from './machine/journey.ts';
import { grantImage, IMAGE, pushProduct } from './machine/product.ts';
import { expose, exposeTls } from './machine/services.ts';
import { inMachine } from './machine/steps.ts';

/** The last good file, which docs/operations.md lists. */
const LEFT_ON_NODE = ['+ f 600 0:0 /var/lib/kubelet/config.json', '+ hash of  /var/lib/kubelet/config.json'];

await inMachine(import.meta.filename, workloads);

async function workloads(): Promise<void> {
  const journey = await Journey.start();
  const { node, within, ok, write, inOrder } = journey;
  const [api, google, rabbit] = [
    await HyperfleetDouble.start(),
    await SecretManagerDouble.start(),
    await startRabbitMq(),
  ];
  const outside = (url: string): string => url.replaceAll('127.0.0.1', ADDRESS);
  for (const url of [api.url, google.url, rabbit.url]) await expose(ADDRESS, Number(new URL(url).port));
  const authority = new Authority('webhook');
  const googleAuthority = new Authority('google');
  const googleUrl = await exposeTls(
    ADDRESS,
    google.port,
    googleAuthority.issue({ commonName: 'secretmanager', hosts: [ADDRESS] }),
  );
  const serving = authority.issue({
    commonName: 'pullwright-webhook',
    hosts: ['pullwright-webhook.pullwright-system.svc'],
  });
  /** Stand-in for Google behind TLS; its metadata server has no TLS, as the real one. */
  const jobEnv = (tls: boolean): Readonly<Record<string, string>> =>
    Object.fromEntries(
      Object.entries(google.jobEnv).map(([name, value]) => [
        name,
        (tls ? value.replace(google.url, googleUrl) : value).replaceAll('127.0.0.1', ADDRESS),
      ]),
    );
  const fleet = (options: { readonly security: string; readonly open: boolean }): string => `
image: ${IMAGE}
imagePullSecrets: [pullwright-registry]
clusters:
  - name: prod
    reconciler: { replicas: 1 }
    systems:
      global-pull-secret:
        createConfigNamespace: true
        agent: { restartWindow: 0s, report: true, janitor: ${options.open}, security: ${options.security} }
      pull-secret-injection:
        admission: webhook
        certificates: { kind: manual, caBundle: ${btoa(authority.certificate)} }
      registry-overrides: {}
      credential-provider:
        crd: true
        matchImages: [docker.io]
        installer: { restartWindowSeconds: 0, report: true, metrics: ${options.open} }
      pull-secret-adapter:
        api: ${outside(api.url)}
        jobGoogleServiceAccount: job@mgmt.iam.gserviceaccount.com
        sentinel: true
        sentinelOptions: { pollSeconds: 1, debounceSeconds: 0 }
        replicas: 1
        alerts: false
        adapterOptions: { repeatSeconds: 0, jobEnv: ${JSON.stringify(jobEnv(options.open))} }
        ${options.open ? 'caConfigMap: job-authorities' : ''}
      verify: { caConfigMap: registry-ca, namespaceSecrets: true }
`;
  const apply = async (text: string): Promise<void> => {
    write('fleet.yaml', text);
    await ok(
      `pullwright synth --fleet fleet.yaml --to manifests
       kubectl apply --server-side --force-conflicts -k manifests/prod
       kubectl wait --for=condition=Established crd --all
       kubectl apply --server-side -k manifests/prod/overlays/config.openshift.io`,
    );
  };
  /** Expects that all containers of our long-running pods are ready. */
  const allReady = (): Promise<void> =>
    within(async () => {
      const { items } = JSON.parse(await ok('kubectl get deployments,daemonsets -A -o json')) as {
        readonly items: readonly Workload[];
      };
      const behind = items.filter(({ metadata, spec, status = {} }) => {
        const wanted = spec.replicas ?? status.desiredNumberScheduled ?? -1;
        const [ready, updated] = [
          status.readyReplicas ?? status.numberReady,
          status.updatedReplicas ?? status.updatedNumberScheduled,
        ];
        return status.observedGeneration !== metadata.generation || ready !== wanted || updated !== wanted;
      });
      const names = behind.map(({ metadata }) => metadata.name);
      assert.deepEqual(names, []);
      assert.equal(items.length, 6);
    });
  const changed = await journey.snapshot();

  test('our image is pushed, and pulled by every pod with the Secret that the fleet names', async () => {
    await pushProduct(node);
    await grantImage(node, 'hyperfleet-system');
    await ok(
      `kubectl -n hyperfleet-system create secret generic pull-secret-adapter-broker --from-literal=url=${outside(rabbit.url)}`,
    );
    write('tls.crt', serving.certificate);
    write('tls.key', serving.key);
    write('ca.crt', node.registryAuthority);
    await ok(
      `kubectl -n pullwright-system create secret tls pullwright-webhook-tls --cert=tls.crt --key=tls.key
       kubectl -n pullwright-system create configmap registry-ca --from-file=ca.crt`,
    );
    await apply(fleet({ security: 'privileged', open: false }));
    await allReady();
    await ok(
      `kubectl -n openshift-config create secret docker-registry pull-secret --docker-server=registry.example.com \
         --docker-username=platform --docker-password="$(cat password)"`,
    );
  });

  test('each runs as the user that its row names', async () => {
    const users = node.run('/bin/ps', '-eo', 'uid,args').split('\n');
    const of = (command: RegExp): readonly string[] =>
      users.filter((line) => command.test(line)).map((line) => line.trim().split(/\s+/)[0] ?? '');
    for (const [command, user] of [
      [/pullwright agent/, '0'],
      [/pullwright install-provider/, '0'],
      [/pullwright reconcile/, '65532'],
      [/pullwright webhook/, '65532'],
      [/pullwright adapter/, '65532'],
      [/pullwright sentinel/, '65532'],
    ] as const)
      assert.deepEqual([...new Set(of(command))], [user], String(command));
  });

  test('verify ends well, as a Job of its CronJob', async () => {
    await ok('kubectl -n pullwright-system create job verify-now --from=cronjob/pullwright-verify');
    await within(async () => {
      const job = JSON.parse(await ok('kubectl -n pullwright-system get job verify-now -o json')) as Workload;
      assert.equal(job.status?.succeeded, 1);
    });
  });

  test('with every system at work, nothing wants attention', () => inOrder());

  test('an event becomes a Job, whose pod runs and refuses an endpoint without TLS, as documented', async () => {
    await ok('kubectl create namespace clusters-cls-1');
    const data = pullSecret('cls-1');
    api.add('cls-1', { provider: 'gcp', gcp: { projectId: 'cust-proj' }, pullSecret: { data } });
    await within(async () => {
      const codes = await ok(
        `kubectl -n hyperfleet-system get pods -o json | jq '.items[] | select(.metadata.name | startswith("pullsecret-cls-1")) |
           .status.containerStatuses[].state.terminated.exitCode'`,
      );
      assert.equal(codes, '78\n');
    });
    const log = await ok('cat /var/log/pods/hyperfleet-system_pullsecret-cls-1-*/*/*.log');
    assert.match(log, /SECRET_MANAGER_ENDPOINT is not an https URL/);
    // The status has the Job's result once its controller has observed the end of the pod.
    await journey.wantsAttention(/Attention .*Job\/hyperfleet-system\/pullsecret-cls-1/);
  });

  test('with every option that changes a container, each is ready again', async () => {
    write('google.crt', googleAuthority.certificate);
    await ok('kubectl -n hyperfleet-system create configmap job-authorities --from-file=ca.crt=google.crt');
    await apply(fleet({ security: 'restricted', open: true }));
    await allReady();
    const agent = node
      .run('/bin/ps', '-eo', 'uid,args')
      .split('\n')
      .find((line) => line.includes('pullwright agent'));
    assert.match(agent ?? '', /^\s*0 /);
  });

  test('an event becomes a Job, whose pod brings the secret to an endpoint with TLS and to HyperShift', async () => {
    await ok('kubectl create namespace clusters-cls-2');
    const data = pullSecret('cls-2');
    api.add('cls-2', { provider: 'gcp', gcp: { projectId: 'cust-proj' }, pullSecret: { data } });
    await within(async () => {
      const available = api.last('cls-2')?.conditions.find(({ type }) => type === 'Available');
      assert.deepEqual([available?.status, available?.reason], ['True', 'SecretAvailable']);
    });
    const stored = google.secrets.get('projects/cust-proj/secrets/hyperfleet-cls-2-pull-secret');
    assert.deepEqual(
      stored?.versions.map((version) => version.data.toString()),
      [data],
    );
    const delivered = `kubectl -n clusters-cls-2 get secret pull-secret -o jsonpath='{.data.\\.dockerconfigjson}'`;
    assert.equal(atob(await ok(delivered)), data);
    assert.deepEqual(api.violations, []);
  });

  test('the way out leaves node and cluster as they were, but for what people made and what is said to stay', async () => {
    await ok('pullwright uninstall --yes');
    await node.ready();
    const { files, objects } = await changed();
    const left = files.map((line) => line.replace(/[0-9a-f]{64}/, 'hash of'));
    assert.deepEqual(left.sort(), LEFT_ON_NODE);
    // Namespaces, Secrets and ConfigMaps of people, and default objects of namespaces.
    const theirs = /^\+ (Namespace|Secret|ConfigMap|ServiceAccount \S+ default$)/;
    assert.deepEqual(
      objects.filter((line) => !theirs.test(line)),
      [],
    );
  });

  test.lastly('the machine stops', async () => {
    await rabbit.stop();
    await api.close();
    await google.close();
    await node.stop();
  });
}

interface Workload {
  readonly metadata: { readonly name: string; readonly generation: number };
  readonly spec: { readonly replicas?: number };
  readonly status?: Readonly<
    Partial<
      Record<
        | 'observedGeneration'
        | 'readyReplicas'
        | 'numberReady'
        | 'updatedReplicas'
        | 'updatedNumberScheduled'
        | 'desiredNumberScheduled'
        | 'succeeded',
        number
      >
    >
  >;
}
