/** `pullwright validate`, as its users run it. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { runInProcess } from '../support/in-process.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

interface Row extends Case {
  readonly text: string;
  /** @default {1} */
  readonly code?: number;
  readonly says: RegExp;
}

const SECRET = (data: string): string =>
  `apiVersion: v1\nkind: Secret\nmetadata: {name: pull, namespace: web}\ntype: kubernetes.io/dockerconfigjson\ndata:\n  .dockerconfigjson: ${Buffer.from(data).toString('base64')}\n`;

const ROWS: readonly Row[] = [
  {
    name: 'a good Secret',
    reason: 'nothing to say',
    text: SECRET('{"auths":{"a.io":{"auth":"dTpw"}}}'),
    code: 0,
    says: /^1 checked, 0 errors, 0 warnings\n$/,
  },
  {
    name: 'a poisoned Secret',
    reason: 'named with path and place',
    text: SECRET('{"auths":{"a.io":{"auth":"?"}}}'),
    says: /Secret\/web\/pull data\["\.dockerconfigjson"\]: auths\["a\.io"\] .*\[AuthNotBase64\]/,
  },
  {
    name: 'a Secret of a wrong type that a pod template lists',
    reason: 'doctor says the same; unlisted, it may be anything',
    text: `apiVersion: v1\nkind: Secret\nmetadata: {name: pull}\nstringData: {config.json: "{}"}\n---\nkind: Deployment\nmetadata: {name: web}\napiVersion: apps/v1\nspec: {template: {spec: {imagePullSecrets: [{name: pull}]}}}\n`,
    says: /\[WrongType\]\n[^\n]*\[KeyMissing\]\n1 checked/,
  },
  {
    name: 'a docker config',
    reason: 'as docker login writes it',
    text: '{"auths":{"a.io":{"auth":"?"}}}',
    says: /standard input:1:11: error: auths\["a\.io"\]/,
  },
  {
    name: 'a provider configuration with a name that the API server refuses',
    reason: 'there is only one',
    text: 'apiVersion: config.openshift.io/v1alpha1\nkind: CRIOCredentialProviderConfig\nmetadata: {name: default}\nspec: {matchImages: [quay.io]}\n',
    says: /standard input:3: error: CRIOCredentialProviderConfig\/default metadata\.name: is "default", expected "cluster".*\[RefusedByDefinition\]/,
  },
  {
    name: 'a cut docker config',
    reason: 'with its place',
    text: '{"auths":{',
    says: /standard input:1:11: error: .*unexpected end.*\[NotJson\]/,
  },
  {
    name: 'a fleet',
    reason: 'every mistake at once',
    text: 'image: a\nclusters:\n  - nam: x\n  - name: y\n    kind: z\n',
    says: /\[FleetInvalid\][\s\S]*\[FleetInvalid\]/,
  },
  {
    name: 'a mirror set',
    reason: 'judged as the nodes read it',
    text: 'apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata: {name: m}\nspec: {imageDigestMirrors: [{source: a.io, mirrors: [m.io, m.io]}]}\n',
    says: /ImageDigestMirrorSet\/m spec\.imageDigestMirrors\[0\].*\[DuplicateMirror\]/,
  },
  {
    name: 'a profile',
    reason: 'with its path',
    text: 'apiVersion: pullwright.dev/v1alpha1\nkind: PullSecretProfile\nmetadata: {name: p}\nspec: {namespaceSelector: {}, selector: {}, secrets: [{name: No_Name}]}\n',
    says: /spec\.secrets\[0\]\.name: .*\[ProfileInvalid\]/,
  },
  {
    name: 'a SidecarSet',
    reason: 'with its path; no selector selects nothing there',
    text: 'apiVersion: apps.kruise.io/v1beta1\nkind: SidecarSet\nmetadata: {name: log}\nspec: {imagePullSecrets: [{name: No_Name}]}\n',
    says: /\[SelectorEmpty\][\s\S]*SidecarSet\/log spec\.imagePullSecrets\[0\]\.name: .*\[SecretNameInvalid\][\s\S]*\[NoContainers\]/,
  },
  {
    name: 'a SidecarSet beside one that brings a container',
    reason: 'the Secrets of both are injected there',
    text: ['a', 'b']
      .map(
        (name) =>
          `apiVersion: apps.kruise.io/v1beta1\nkind: SidecarSet\nmetadata: {name: ${name}}\nspec: {selector: {matchLabels: {app: web}}, imagePullSecrets: [{name: quay}]${name === 'a' ? '' : ', containers: [{name: log}]'}}\n`,
      )
      .join('---\n'),
    code: 0,
    says: /2 checked, 0 errors, 0 warnings/,
  },
  {
    name: 'a provider configuration',
    reason: 'patterns are read by the kubelet',
    text: 'apiVersion: config.openshift.io/v1\nkind: CRIOCredentialProviderConfig\nmetadata: {name: cluster}\nspec: {matchImages: ["a.io:port", "a.io/*"]}\n',
    says: /matchImages\[0\]: .*\[KubeletRefuses\][\s\S]*matchImages\[1\]: .*\[NotMeant\]/,
  },
  {
    name: 'a provider configuration that the API server refuses',
    reason: 'what its definition says, once',
    text: 'apiVersion: config.openshift.io/v1\nkind: CRIOCredentialProviderConfig\nmetadata: {name: cluster}\nspec: {matchImages: [docker.io, Quay.io, quay.io, quay.io]}\n',
    says: /matchImages\[1\]: invalid value "Quay\.io".*\[RefusedByDefinition\][\s\S]*matchImages: duplicate value: "quay\.io" \[RefusedByDefinition\][\s\S]* 2 errors/,
  },
  {
    name: "the kubelet's own file",
    reason: 'judged in its words',
    text: 'apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders: []\n',
    says: /at least 1 item.*\[KubeletRefuses\]/,
  },
  {
    name: 'a version of Secrets that there is not',
    reason: 'an API server would refuse it',
    text: SECRET('{"auths":{"quay.io":{"auth":"dTpw"}}}').replace('apiVersion: v1', 'apiVersion: v2'),
    says: /apiVersion: is not a version of Secret, expected "v1" \[WrongVersion\]/,
  },
  {
    name: 'mirrors that are no list',
    reason: 'what other commands could not read either',
    text: 'apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {name: m}\nspec: {imageTagMirrors: {source: a.io}}\n',
    says: /standard input:1: error: ImageTagMirrorSet "m": spec\.imageTagMirrors must be an array/,
  },
  {
    name: 'tabs',
    reason: 'no YAML',
    text: 'kind: Secret\n\tname: x\n',
    says: /standard input:2: error: not valid YAML.*\[Unreadable\]/,
  },
  {
    name: 'a mirror set with a fault in its second entry',
    reason: 'the line is that of the place, and neither object nor place is said twice',
    text: 'apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata: {name: m}\nspec:\n  imageDigestMirrors:\n    - source: a.io\n      mirrors: [m.io]\n    - source: b.io\n      mirrors:\n        - n.io\n        - https://n.io\n',
    says: /^standard input:11: error: ImageDigestMirrorSet\/m spec\.imageDigestMirrors\[1\]\.mirrors\[1\]: cannot be used as mirror: "https:\/\/n\.io" has a scheme: [^\n]*the API server rejects the object \[MirrorInvalid\]\n1 checked, 1 error, 0 warnings\n$/,
  },
  {
    name: 'a source policy that is none',
    reason: 'the schema lists the values',
    text: 'apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {name: m}\nspec:\n  imageTagMirrors:\n    - source: a.io\n      mirrors: [m.io]\n      mirrorSourcePolicy: Sometimes\n',
    says: /^standard input:8: error: .*has the value "Sometimes": must be one of NeverContactSource, AllowContactingSource/,
  },
  {
    name: 'a mirror that makes a repository a bare host',
    reason: 'the runtime pulls the image from nowhere, so that it is an error here too',
    text: 'apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {name: m}\nspec:\n  imageTagMirrors:\n    - source: docker.io/library/nginx\n      mirrors: [m10.example.com]\n',
    says: /^standard input:7: error: .*the runtime rejects it, at the source too.*\[MirrorWithoutPath\]/,
  },
  {
    name: 'an Image object with both lists',
    reason: 'the API server refuses it, be one of them empty',
    text: 'apiVersion: config.openshift.io/v1\nkind: Image\nmetadata: {name: cluster}\nspec:\n  registrySources:\n    allowedRegistries: []\n    blockedRegistries: [bad.io]\n',
    says: /^standard input:5: error: Image\/cluster spec\.registrySources: has blockedRegistries and allowedRegistries[^\n]*\[AllowedAndBlocked\]\n1 checked, 1 error/,
  },
  {
    name: 'an Image of another group',
    reason: 'a dump is full of them, and none says what nodes do',
    text: 'apiVersion: image.openshift.io/v1\nkind: Image\nmetadata: {name: cluster}\nspec: {registrySources: 7}\n',
    says: /^0 checked/,
  },
  {
    name: 'a HostedCluster whose mirrors its guest refuses',
    reason: 'HyperShift makes an ImageDigestMirrorSet of them',
    text: 'apiVersion: hypershift.openshift.io/v1beta1\nkind: HostedCluster\nmetadata: {name: prod, namespace: clusters}\nspec:\n  imageContentSources:\n    - source: quay.io/a\n      mirrors: [m.io/a]\n    - source: quay.io/A\n      mirrors: [m.io/b]\n',
    says: /^standard input:8: error: HostedCluster\/clusters\/prod spec\.imageContentSources\[1\]: has no usable source/,
  },
  {
    name: 'mirror sets of a management cluster and of a hosted one',
    reason: 'no node goes by both, so that they do not contradict each other',
    text: 'apiVersion: hypershift.openshift.io/v1beta1\nkind: HostedCluster\nmetadata: {name: prod, namespace: clusters}\nspec:\n  imageContentSources: [{source: quay.io/a, mirrors: [m.io/a, n.io/a]}]\n---\napiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata: {name: m}\nspec:\n  imageDigestMirrors: [{source: quay.io/a, mirrors: [n.io/a, m.io/a], mirrorSourcePolicy: NeverContactSource}]\n',
    code: 0,
    says: /^2 checked, 0 errors, 0 warnings/,
  },
  {
    name: 'nothing of ours',
    reason: 'a silent pass would deceive',
    text: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n',
    says: /^0 checked/,
  },
];

table(test, ROWS, async ({ text, code = 1, says }) => {
  const ran = await runInProcess(['validate', '-'], { stdin: Readable.from([Buffer.from(text)]) });
  assert.match(ran.stdout, says, ran.stderr);
  assert.equal(ran.code, code, ran.stdout);
});

test('profiles: how many namespaces and pods a selector comes to', async () => {
  const profile = (name: string, namespaceSelector: string): string =>
    `apiVersion: pullwright.dev/v1alpha1\nkind: PullSecretProfile\nmetadata: {name: ${name}}\nspec: {namespaceSelector: ${namespaceSelector}, selector: {}, secrets: [{name: a}]}\n`;
  const stdin = [
    profile('all', '{}'),
    profile('team', '{matchLabels: {team: a}}'),
    profile('typing-error', '{matchLabels: {tema: a}}'),
    'apiVersion: v1\nkind: Namespace\nmetadata: {name: web, labels: {team: a}}\n',
    'apiVersion: v1\nkind: Namespace\nmetadata: {name: db}\n',
  ].join('---\n');
  const ran = await runInProcess(['validate', '-'], { stdin: Readable.from([Buffer.from(stdin)]) });
  assert.equal(ran.code, 0, ran.stdout);
  assert.deepEqual(ran.stderr.trim().split('\n'), [
    'note: PullSecretProfile/all selects every namespace: 2 among these files, and every future one, all pods of them',
    'note: PullSecretProfile/team selects 1 of 2 namespaces among these files, all pods of them',
    'note: PullSecretProfile/typing-error selects 0 of 2 namespaces among these files',
  ]);
});

test('a folder: what the platform shadows is a warning, which --strict takes for an error', async () => {
  const named = (namespace: string, name: string, key: string): string =>
    SECRET(`{"auths":{"${key}":{"auth":"dTpw"}}}`).replace(
      'name: pull, namespace: web',
      `name: ${name}, namespace: ${namespace}`,
    );
  const texts = [
    named('kube-system', 'original-pull-secret', 'a.io'),
    named('kube-system', 'additional-pull-secret', 'https://a.io'),
  ];
  writeFileSync(join(folder, 'both.yaml'), texts.join('---\n'));
  const ran = await runInProcess(['validate', folder, '--output', 'json']);
  const answer = JSON.parse(ran.stdout) as { judged: number; problems: { check: string; line: number }[] };
  assert.deepEqual([ran.code, answer.judged], [0, 2]);
  assert.deepEqual(
    answer.problems.map(({ check, line }) => `${check} ${line}`),
    ['SpellingVariant 13'],
  );
  assert.equal((await runInProcess(['validate', folder, '--strict'])).code, 1);
});

test('a repository of two clusters: each is judged with its own platform secret, and equal names are no mistake', async () => {
  const repository = tempFolder();
  const named = (namespace: string, name: string, key: string): string =>
    SECRET(`{"auths":{"${key}":{"auth":"dTpw"}}}`).replace(
      'name: pull, namespace: web',
      `name: ${name}, namespace: ${namespace}`,
    );
  for (const [cluster, key] of [
    ['prod', 'a.io'],
    ['stage', 'b.io'],
  ] as const) {
    mkdirSync(join(repository, cluster));
    writeFileSync(join(repository, cluster, 'platform.yaml'), named('openshift-config', 'pull-secret', key));
    writeFileSync(
      join(repository, cluster, 'tenant.yaml'),
      named('kube-system', 'additional-pull-secret', 'https://b.io'),
    );
  }
  const shadowed = await runInProcess(['validate', repository]);
  assert.equal(shadowed.code, 0, shadowed.stdout);
  assert.match(
    shadowed.stdout,
    /^[^\n]*stage\/tenant\.yaml:6: warning: .*\[SpellingVariant\]\n4 checked, 0 errors, 1 warning\n$/,
  );
  writeFileSync(join(repository, 'prod', 'twice.yaml'), named('openshift-config', 'pull-secret', 'c.io'));
  const twice = await runInProcess(['validate', repository]);
  assert.equal(twice.code, 1);
  assert.match(twice.stdout, /prod\/twice\.yaml:1: error: .*is duplicated: .*\[GivenTwice\]/);
});

test('wrong use and a missing file', async () => {
  assert.equal((await runInProcess(['validate'])).code, 2);
  const ran = await runInProcess(['validate', join(folder, 'gone.yaml')]);
  assert.equal(ran.code, 1);
  assert.match(ran.stderr, /gone\.yaml": not found/);
});
