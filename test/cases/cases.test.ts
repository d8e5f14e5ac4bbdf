/** Situations from public reports: each folder through the commands that can say something of it, with the right answer. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { runInProcess } from '../support/in-process.ts';
import { test } from '../support/suite.ts';

const here = import.meta.dirname;

interface Run {
  /** Arguments of the command; `FOLDER` is replaced by the folder of the case. */
  readonly args: string;
  /** Exit code. @default {1} */
  readonly code?: number;
  readonly says: RegExp;
  /** Text that the output must not contain. */
  readonly never?: RegExp;
}

/** An image whose registry the policy does not allow, and whose mirror it does. */
const DENIED = `registry.redhat.io/rhel9/x@sha256:${'a'.repeat(64)}`;
const ANONYMOUS = /kubelet +one anonymous attempt/;
const ROBOT_IN_TEMPLATE = /kind: Deployment[\s\S]*imagePullSecrets:\n +- name: robot/;

const RUNS: Readonly<Record<string, readonly Run[]>> = {
  '01-empty-name': [
    { args: 'explain --pod deploy/web -n shop --from FOLDER/all.yaml', says: ANONYMOUS, never: /1\. robot/ },
    {
      args: 'doctor deploy/web -n shop --from FOLDER/all.yaml',
      says: ROBOT_IN_TEMPLATE,
      never: /kind: ServiceAccount/,
    },
  ],
  '02-mirror-pod': [
    { args: 'explain --pod haproxy-node1 -n kube-system --from FOLDER/all.yaml', says: ANONYMOUS },
    {
      args: 'doctor haproxy-node1 -n kube-system --from FOLDER/all.yaml',
      says: /broken +credential .*the registry requires one\n\nA static pod cannot list Secrets: put an entry for registry\.acme\.example/,
      never: /recreate it|kind: ServiceAccount/,
    },
  ],
  '04-service-account-alias': [
    {
      args: 'explain --pod deploy/web -n shop --from FOLDER/all.yaml',
      code: 0,
      says: /Secret robot, listed by ServiceAccount\/shop\/deployer[\s\S]*one credential/,
    },
    { args: 'doctor deploy/web -n shop --from FOLDER/all.yaml', code: 0, says: /ok +credential/ },
  ],
  '06-short-name-enforced': [
    {
      args: 'doctor web -n shop --from FOLDER/all.json',
      says: /broken +registry .*short name[\s\S]*docker\.io\/library\/alpine/,
    },
    { args: 'doctor --all -n shop --from FOLDER/all.json', says: /^1 pod in namespace "shop" fails/ },
  ],
  '07-plain-http': [
    {
      args: 'doctor web -n shop --from FOLDER/all.json',
      says: /broken +registry .*registry\.lab\.example:5000 serves HTTP[\s\S]*insecure/,
      never: /does not trust/,
    },
    { args: 'doctor --all -n shop --from FOLDER/all.json', says: /registry\.lab\.example:5000 serves HTTP/ },
  ],
  '09-newline': [
    { args: 'validate FOLDER/config.json', code: 0, says: /warning: .*line feed/ },
    { args: 'validate --strict FOLDER/config.json', says: /warning: .*line feed/ },
    { args: 'validate FOLDER/crlf.json', code: 0, says: /warning: .*line feed/ },
    { args: 'validate FOLDER/up.json', code: 0, says: /warning: .*line feed/ },
    { args: 'validate FOLDER/space.json', code: 0, says: /warning: .*blank at the start or end/ },
    // The kubelet refuses the whole document.
    { args: 'validate FOLDER/twice.json', says: /error: .*cannot pull any image/ },
    { args: 'validate FOLDER/secret.yaml', code: 0, says: /warning: .*line feed/ },
  ],
  '19-allowed-registries': [
    {
      args: 'explain deploy/op -n shop --from FOLDER/all.yaml',
      says: /error: .*no usable pull source for "[^"]+": registry\.redhat\.io\/\S+ is not tried: rejected by the policy/,
    },
    {
      args: 'doctor deploy/op -n shop --from FOLDER/all.yaml',
      says: /broken +pull-sources .*registry\.redhat\.io\/\S+ is not tried: rejected by the policy/,
    },
    {
      args: `mirrors ${DENIED} --for node --from FOLDER/all.yaml`,
      says: /mirror, not tried: rejected by the policy/,
    },
    {
      args: 'mirrors --what-if FOLDER/what-if-image.txt --in-use --from FOLDER/all.yaml',
      code: 0,
      says: /rejected +registry\.redhat\.io\/\S+ +\(Deployment\/shop\/op, for node\)/,
    },
  ],
  '22-pull-verification-crio': [
    {
      args: 'explain --pod web-0 -n shop --node node1 --from FOLDER/all.yaml',
      says: /a pod without the Secret can use it, as CRI-O 1\.35\.1 \(before 1\.36\)/,
    },
  ],
  '24-x509-in-name': [
    {
      args: 'doctor web -n shop --from FOLDER/all.json',
      says: /broken +registry .*quay\.io denied access/,
      never: /certificate of|does not trust/,
    },
  ],
  '25-no-search-registries': ['empty', 'missing', 'swallowed'].map((name) => ({
    args: `mirrors kicbase/echo-server:1.0 --registries-conf FOLDER/${name}.conf`,
    says: /pulls from nowhere: short-name "kicbase\/echo-server:1\.0" did not resolve to an alias/,
    never: /docker\.io|registry\.access/,
  })),
  '26-without-namespace': ['', ' -n team'].flatMap((namespace) => [
    {
      args: `explain deploy/ais${namespace} --from FOLDER/out.yaml`,
      says: /Secret regcred, listed by ServiceAccount\/\w+\/ais-client/,
    },
    {
      args: `doctor deploy/ais${namespace} --from FOLDER/out.yaml`,
      says: /broken +secrets-exist .*"regcred", listed by ServiceAccount\/\w+\/ais-client, does not exist/,
    },
  ]),
  '40-hostedclusters-same-name': [
    {
      args: 'validate FOLDER/fleet.yaml',
      says: /fleet\.yaml:24:\d+: error: .*"prod" is also the name of clusters\[1\][\s\S]*"management" is also/,
    },
    {
      args: 'report --from FOLDER/in',
      code: 0,
      says: /clusters\/management[\s\S]*\nteam-a\/prod[\s\S]*\nteam-b\/prod/,
    },
  ],
  '41-sops': [
    {
      args: 'validate FOLDER/in',
      says: /enc\.yaml:6: warning: .*encrypted by SOPS[\s\S]*masked\.yaml:5: error: .*\*\*SOPS\*\*[\s\S]*ghcr.*encrypted by SOPS/,
      never: /base64|not JSON|API server/,
    },
    { args: 'validate --ignore-others FOLDER/in/enc.yaml', code: 0, says: /encrypted by SOPS/ },
    { args: 'validate FOLDER/flow/manifests', code: 0, says: /0 errors, 1 warning/ },
    { args: 'reconcile --from FOLDER/in --dry-run', code: 0, says: /is encrypted by SOPS/ },
  ],
  '42-kruise-namespaces': [
    {
      args: 'reconcile --from FOLDER/in --dry-run',
      code: 0,
      says: /configured Pod\/team-a\/a/,
      never: /configured Pod\/kruise-system/,
    },
  ],
  '43-helm-template': [
    { args: 'validate --ignore-others FOLDER/in/templates/pullsecret.yaml', code: 0, says: /0 errors/ },
    {
      args: 'validate FOLDER/in/templates/pullsecret.yaml',
      says: /template of Helm: render it first/,
      never: /quote it|no text/,
    },
    { args: 'validate FOLDER/in', says: /Helm chart: render it first/, never: /no kind|no text/ },
    {
      args: 'reconcile --from FOLDER/in --dry-run',
      says: /Helm chart: render it first/,
      never: /no kind|no text/,
    },
  ],
  '44-doctor-sa-fix': [
    {
      args: 'doctor web -n demo --from FOLDER/in',
      says: /\nkubectl patch serviceaccount default -n demo --type=json -p '\[{"op":"add","path":"\/imagePullSecrets\/-","value":{"name":"partner"}}\]'/,
      never: /server-side/,
    },
    {
      args: 'explain pod/web -n demo --from FOLDER/in',
      says: /error: .*Secret "partner"[\s\S]*kubectl patch/,
    },
    { args: 'explain pods/web -n demo --from FOLDER/in', says: /^registry\.example\.com/ },
    { args: 'explain po web -n demo --from FOLDER/in', says: /^registry\.example\.com/ },
    { args: 'report --from FOLDER/in', says: /Secret "partner"[\s\S]*kubectl patch/ },
  ],
  '50-port-mismatch': ['doctor web-0', 'explain --pod web-0'].map((command) => ({
    args: `${command} -n shop --from FOLDER/all.yaml`,
    says: /Entry "registry\.acme\.io" of Secret\/shop\/regcred[\s\S]*An entry "registry\.acme\.io:5000"/,
  })),
  '51-live-pod-empty-list': [
    { args: 'explain --pod job-1 -n team --from FOLDER/all.yaml', says: ANONYMOUS },
    {
      args: 'doctor job-1 -n team --from FOLDER/all.yaml',
      says: /broken +injection .*"quay-robot" to such pods, but this one does not list it/,
    },
  ],
  '52-opaque-type': [
    {
      args: 'validate FOLDER/all.yaml',
      code: 0,
      says: /warning: Secret\/shop\/regcred type: is "Opaque", expected "kubernetes\.io\/dockerconfigjson"/,
    },
    {
      args: 'doctor web-6d5f-abcde -n shop --from FOLDER/all.yaml',
      says: /broken +secrets-readable .*"regcred"[\s\S]*kubectl get secret regcred -n shop -o yaml \| sed .* \| kubectl replace --force -f -/,
    },
  ],
  '53-creds-store': [
    {
      args: 'validate FOLDER/all.yaml',
      code: 0,
      says: /warning: .*has no password: credsStore "osxkeychain".*create secret docker-registry/,
    },
    ...['doctor app-0', 'explain --pod app-0'].map((command) => ({
      args: `${command} -n mac --from FOLDER/all.yaml`,
      says: /has no password: credsStore "osxkeychain"/,
    })),
  ],
  '54-ecr-expired': [
    { args: 'explain --pod train-0 -n ml --from FOLDER/all.yaml', says: /expired at 2026-11-23T11:20:18Z/ },
    {
      args: 'doctor train-0 -n ml --from FOLDER/all.yaml',
      says: /broken +credential .*Secret\/ml\/ecr.*expired at 2026-11-23T11:20:18Z/,
    },
    { args: 'validate FOLDER/all.yaml', code: 0, says: /warning: .*expired at 2026-11-23T11:20:18Z/ },
    { args: 'report --from FOLDER/all.yaml --output json', says: /expired at 2026-11-23T11:20:18Z/ },
  ],
  '55-unreadable-secrets': [
    {
      args: 'doctor web -n shop --from FOLDER/all.yaml',
      says: /unknown +credential .*Secret "sops" is unknown/,
    },
    { args: 'explain pod/api -n shop --from FOLDER/all.yaml', says: /kubelet +unknown/, never: ANONYMOUS },
    { args: 'report --from FOLDER/all.yaml', code: 0, says: /^No problem found .* not confirmed healthy/ },
  ],
};

for (const folder of readdirSync(here)
  .filter((name) => /^\d/.test(name))
  .sort())
  test(folder, async () => {
    const runs = RUNS[folder] ?? [];
    assert.ok(runs.length > 0, 'a folder without a run proves nothing');
    for (const { args, code = 1, says, never } of runs) {
      const ran = await runInProcess(args.replaceAll('FOLDER', join(here, folder)).split(' '));
      const said = `${ran.stdout}${ran.stderr}`;
      assert.match(said, says, args);
      if (never !== undefined) assert.doesNotMatch(said, never, args);
      assert.equal(ran.code, code, `${args}\n${said}`);
    }
  });
