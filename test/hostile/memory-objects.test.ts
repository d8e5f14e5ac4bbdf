// deadline: 300 s
/**
 * Heavy objects other than Secrets, in the executable that ships: pods, ServiceAccounts and namespaces of which each is as large as an API
 * server takes them cost no more memory than what is read of them.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from '../control-plane/eventually.ts';
import { CrowdedServer } from '../pull-secret-injection/crowded-server.ts';
import { namespaceObject, profileObject, sourceObject, startCommand } from '../pull-secret-injection/live.ts';
import { executable } from '../support/executable.ts';
import { suite } from '../support/suite.ts';
import { peakOf } from './heavy-secrets.ts';

const test = suite('memory by the weight of other objects');
const HEAVY = 300;
const MOST_MIB = 64;
const program = [await executable()];

const texts = (count: number, at: number): readonly string[] =>
  Array.from({ length: count }, (_, one) => `${at}-${one}-${'x'.repeat(80)}`);
const annotations = (at: number): Record<string, string> =>
  Object.fromEntries(texts(2000, at).map((text) => [`team.example/${text.slice(0, 40)}`, text]));

/** Whose heavy ones there are, and one of them. */
const KINDS = {
  pods: (at: number) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `heavy-${at}`, namespace: 'heavy', annotations: annotations(at) },
    spec: {
      serviceAccountName: 'default',
      containers: [
        {
          name: 'a',
          image: 'quay.io/a',
          env: texts(8000, at).map((value, one) => ({ name: `E${one}`, value })),
        },
      ],
    },
    status: { phase: 'Running' },
  }),
  serviceaccounts: (at: number) => ({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: `heavy-${at}`, namespace: 'heavy', annotations: annotations(at) },
    imagePullSecrets: texts(8000, at).map((name) => ({ name })),
  }),
  namespaces: (at: number) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: `heavy-${at}`, annotations: annotations(at) },
  }),
} as const;

/** The peak once a copy is there and everything was read. */
async function peakWith(plural: keyof typeof KINDS | undefined): Promise<number> {
  const server = await CrowdedServer.start();
  for (const name of ['kube-system', 'platform', 'heavy']) server.put('namespaces', namespaceObject(name));
  server.put('secrets', sourceObject('platform', 'quay', ['quay.io']));
  server.put(
    'pullsecretprofiles',
    profileObject('team', {
      namespaceSelector: { matchLabels: { team: 'a' } },
      selector: {},
      mode: 'Distribute',
      secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }],
    }),
  );
  if (plural !== undefined) for (let at = 0; at < HEAVY; at++) server.put(plural, KINDS[plural](at));
  // Read last of all: the copy in it says that the others were read.
  const reconciler = startCommand(server.kubeconfig, { audit: true, admission: 'none' }, program);
  try {
    for (const name of ['web', 'late']) {
      server.put('namespaces', namespaceObject(name, { team: 'a' }));
      await eventually(
        () => {
          assert.equal(reconciler.process.exitCode, null, reconciler.log().slice(-2000));
          const copies = server.all('secrets').filter(({ metadata }) => metadata.namespace === name);
          assert.equal(copies.length, 1, reconciler.log().slice(-2000));
          return Promise.resolve();
        },
        { withinMs: 90_000, everyMs: 100 },
      );
    }
    return peakOf(reconciler.process.pid);
  } finally {
    await reconciler.stop();
    await server.stop();
  }
}

const light = await peakWith(undefined);
for (const plural of Object.keys(KINDS) as (keyof typeof KINDS)[])
  test(`${HEAVY} heavy ${plural} of one tenant`, async () => {
    const peak = await peakWith(plural);
    process.stdout.write(`peak of memory: ${light.toFixed(0)} MiB, with ${plural} ${peak.toFixed(0)} MiB\n`);
    assert.ok(peak - light <= MOST_MIB, `${(peak - light).toFixed(0)} MiB more`);
  });

for (const plural of ['pods', 'serviceaccounts'] as const)
  test(`a person who verifies what is in use beside ${HEAVY} heavy ${plural}`, async () => {
    const server = await CrowdedServer.start();
    try {
      for (const name of ['kube-system', 'heavy']) server.put('namespaces', namespaceObject(name));
      for (let at = 0; at < HEAVY; at++) server.put(plural, KINDS[plural](at));
      const run = spawn(program[0] ?? '', ['verify', '--all-in-use', `--kubeconfig=${server.kubeconfig}`]);
      let [said, peak] = ['', 0];
      for (const out of [run.stdout, run.stderr]) out.on('data', (chunk) => (said += String(chunk)));
      // What it took at most can be read only while it runs.
      const looks = setInterval(() => (peak = Math.max(peak, peakOf(run.pid) || 0)), 20);
      await once(run, 'close');
      clearInterval(looks);
      process.stdout.write(`peak of memory: ${peak.toFixed(0)} MiB\n`);
      assert.doesNotMatch(said, /Cannot list|no answer/);
      assert.match(said, plural === 'pods' ? /quay\.io\/a/ : /Nothing|no image|0 images/i);
      assert.ok(peak < light + 2 * MOST_MIB, `${peak.toFixed(0)} MiB`);
    } finally {
      await server.stop();
    }
  });

test.run();
