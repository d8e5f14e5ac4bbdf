/**
 * What a reconciler of 0.1.0 left in a cluster, under the reconciler of today. `fixtures/0.1.0/cluster` is a dump of a hosted
 * cluster and its management cluster as 0.1.0 left them; it is never changed.
 */
import assert from 'node:assert/strict';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { redact } from '../../runtime/core/redacted.ts';
import { parseDocument } from '../../runtime/global-pull-secret/agent/document.ts';
import { NODE } from '../reconcile/process.ts';
import { parseOverridesDocument } from '../registry-overrides/overrides-document.ts';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';

const test = suite('objects of other versions in a cluster');
const fixture = new URL('./fixtures/0.1.0/cluster', import.meta.url).pathname;
const work = mkdtempSync(join(tmpdir(), 'pullwright-upgrade-'));

interface Obj {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly managedFields?: unknown };
  readonly data?: Readonly<Record<string, string>>;
}

function objectsOf(role: string): readonly Obj[] {
  const text = readFileSync(join(fixture, role, 'objects.yaml'), 'utf8');
  return parseAllDocuments(text).map((document) => document.toJS() as Obj);
}

async function reconcile(hosted: string, management: string, ...flags: string[]) {
  const ran = await runProcess([
    ...NODE,
    'reconcile',
    '--from',
    hosted,
    '--management',
    management,
    '--hosted-cluster',
    'clusters/prod',
    ...flags,
  ]);
  assert.equal(ran.code, 0, ran.stderr);
  return ran.stdout;
}

/** What is said to change in an object that is configured. */
function linesOf(text: string, object: string): readonly string[] {
  const [, rest = ''] = text.split(`configured ${object}\n`);
  const lines = rest.split('\n');
  return lines
    .slice(
      0,
      lines.findIndex((line) => !line.startsWith('      ')),
    )
    .map((line) => line.trim());
}

/** Beside the document, which stays as it is, so that no agent holds what the reconciler has judged. */
const MARK = '+ data.pullwright-judged: [redacted] (64 bytes)';

test('the reconciler of today removes nothing, makes no Secret anew, and restarts no control plane', async () => {
  const text = await reconcile(join(fixture, 'hosted'), join(fixture, 'management'), '--verbose');
  assert.match(text, /, 0 removed\n$/);
  assert.deepEqual(linesOf(text, 'Secret/kube-system/original-pull-secret'), [MARK]);
  // Which entries are the tenant's is remembered in a form that does not grow with them; the content stays.
  assert.deepEqual(linesOf(text, 'Secret/kube-system/global-pull-secret'), [
    '+ metadata.annotations["pullwright.dev/additional-entries"]: "7:KA=="',
    MARK,
  ]);
  for (const name of ['control-plane-operator', 'ignition-server'])
    assert.match(text, new RegExp(`unchanged +Deployment/clusters-prod/${name}`));
  assert.doesNotMatch(text, /(created|replaced|removed) +(Node|Secret|Deployment)\//);
  assert.doesNotMatch(text, /configured +(Node|Deployment)\//);
  // Agents of that version ran as the user of the image, waited for a platform secret, asked nobody, and had the port of another operator: only that is changed.
  const agent = linesOf(text, 'DaemonSet/kube-system/global-pull-secret-syncer');
  assert.deepEqual(
    agent.map((line) => line.replace(/^(. )spec\.template\.spec\./, '$1')),
    [
      '~ automountServiceAccountToken: false -> true',
      '~ containers[global-pull-secret-syncer].image: "ghcr.io/pullwright/pullwright:0.1.0" -> "registry.example.com/pullwright/pullwright:0.1.0"',
      '~ containers[global-pull-secret-syncer].command: ["/usr/bin/pullwright","agent","--health-port=9447"] -> ["/usr/bin/pullwright","agent","--health-port=947","--watch","--report"]',
      '+ containers[global-pull-secret-syncer].securityContext.runAsNonRoot: false',
      '+ containers[global-pull-secret-syncer].securityContext.runAsUser: 0',
      '+ containers[global-pull-secret-syncer].securityContext.runAsGroup: 0',
      '~ containers[global-pull-secret-syncer].resources.requests.memory: "35Mi" -> "80Mi"',
      '~ containers[global-pull-secret-syncer].readinessProbe.httpGet.port: 9447 -> 947',
      '+ containers[global-pull-secret-syncer].ports: [{"name":"probes","containerPort":947,"hostPort":947,"protocol":"TCP"}]',
      '+ volumes[original-pull-secret].secret.optional: true',
    ],
  );
});

test('once more, and nothing is left to do: versions do not take turns', async () => {
  const to = join(work, 'next');
  await reconcile(join(fixture, 'hosted'), join(fixture, 'management'), '--to', to, '--with-secrets');
  const merged = join(work, 'merged');
  for (const role of ['hosted', 'management']) {
    cpSync(join(fixture, role), join(merged, role), { recursive: true });
    overlay(join(merged, role, 'objects.yaml'), join(to, role));
  }
  const again = await reconcile(join(merged, 'hosted'), join(merged, 'management'));
  assert.match(again, /\n0 created, 0 configured, \d+ unchanged, 0 removed\n$/);
});

/** Leaves out of `file` what the folder holds, which the next run reads beside it; who wrote an object is known only to a cluster. */
function overlay(file: string, folder: string): void {
  const text = readFileSync(file, 'utf8');
  const fresh = readFolder(folder);
  const id = ({ kind, metadata }: Obj): string => `${kind}/${metadata.namespace ?? ''}/${metadata.name}`;
  const names = new Set(fresh.map(id));
  const documents = parseAllDocuments(text);
  const kept = documents.filter((document) => !names.has(id(document.toJS() as Obj)));
  const before = new Map(documents.map((document) => document.toJS() as Obj).map((one) => [id(one), one]));
  const written = fresh.map((object) => {
    const managedFields = before.get(id(object))?.metadata.managedFields;
    return `${JSON.stringify({ ...object, metadata: { ...object.metadata, managedFields } })}\n`;
  });
  writeFileSync(file, [...kept.map(String), ...written].join('---\n'));
}

function readFolder(folder: string): readonly Obj[] {
  const files = globSync('**/*.yaml', { cwd: folder });
  return files.map((file) => parse(readFileSync(join(folder, file), 'utf8')) as Obj);
}

test('an object whose key this version does not understand is left alone', async () => {
  const folder = join(work, 'unknown-key');
  cpSync(join(fixture, 'hosted'), folder, { recursive: true });
  const later = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: 'of-a-later-version',
      namespace: 'kube-system',
      uid: '11111111-1111-4111-8111-111111111111',
      labels: { 'pullwright.dev/owner': 'global-pull-secret' },
      annotations: { 'pullwright.dev/key': 'v2;scope=clusters/prod;name=later' },
    },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': 'e30=' },
  };
  writeFileSync(join(folder, 'later.yaml'), JSON.stringify(later));
  const text = await reconcile(folder, join(fixture, 'management'));
  assert.match(text, /, 0 removed\n$/);
});

test('the agent of today reads the Secrets of 0.1.0, and 0.1.0 would read those of today', () => {
  const secrets = objectsOf('hosted').filter(({ kind }) => kind === 'Secret');
  const names = secrets.map(({ metadata }) => metadata.name);
  for (const name of ['original-pull-secret', 'global-pull-secret']) assert.ok(names.includes(name));
  for (const { metadata, data } of secrets.filter(({ metadata }) =>
    /(original|global)-pull/.test(metadata.name),
  )) {
    const bytes = Buffer.from(data?.['.dockerconfigjson'] ?? '', 'base64');
    const document = parseDocument(redact(new Uint8Array(bytes)), metadata.name);
    assert.ok(document.entries > 0);
    // What 0.1.0 asks of it: an object whose "auths" are objects with texts. Today's Secret is the same, byte for byte (above).
    const { auths } = JSON.parse(bytes.toString('utf8')) as {
      auths: Record<string, Record<string, unknown>>;
    };
    for (const entry of Object.values(auths))
      for (const value of Object.values(entry)) assert.equal(typeof value, 'string');
  }
});

test('the overrides document of 0.1.0 is read; one of a later version is refused, not guessed at', () => {
  const [map] = objectsOf('management').filter(
    ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'registry-overrides',
  );
  const text = map?.data?.['overrides.json'] ?? '';
  const rules = parseOverridesDocument(text);
  assert.ok(rules !== undefined && rules.length > 0);
  const later = JSON.stringify({ ...(JSON.parse(text) as object), version: 2 });
  assert.equal(parseOverridesDocument(later), undefined);
});

test('a configuration of a later version is refused with the name of what is not known', async () => {
  const config = join(work, 'config.yaml');
  writeFileSync(config, 'systems: { global-pull-secret: { tomorrow: true } }\n');
  const ran = await runProcess([...NODE, 'reconcile', '--from', join(fixture, 'hosted'), '--config', config]);
  assert.notEqual(ran.code, 0);
  assert.match(ran.stderr, /tomorrow/);
});

test.lastly('the scratch folder goes', () => rmSync(work, { recursive: true }));
test.run();
