/** Situations from public reports: each folder through the commands that can say something of it, with the right answer. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { runInProcess } from '../support/in-process.ts';
import { suite } from '../support/suite.ts';

const test = suite('cases from public reports');
const here = import.meta.dirname;

interface Run {
  /** Its arguments; `FOLDER` stands for the folder of the case. */
  readonly args: string;
  readonly code: number;
  readonly says: RegExp;
  /** What must not be said. */
  readonly never?: RegExp;
}

/** An image whose registry the policy does not allow, and whose mirror it does. */
const DENIED = `registry.redhat.io/rhel9/x@sha256:${'a'.repeat(64)}`;
const ANONYMOUS = /kubelet +one anonymous attempt/;
const ROBOT_IN_TEMPLATE = /kind: Deployment[\s\S]*imagePullSecrets:\n +- name: robot/;

const RUNS: Readonly<Record<string, readonly Run[]>> = {
  '01-empty-name': [
    {
      args: 'explain --pod deploy/web -n shop --from FOLDER/all.yaml',
      code: 0,
      says: ANONYMOUS,
      never: /robot/,
    },
    {
      args: 'doctor deploy/web -n shop --from FOLDER/all.yaml',
      code: 1,
      says: ROBOT_IN_TEMPLATE,
      never: /kind: ServiceAccount/,
    },
  ],
  '02-mirror-pod': [
    { args: 'explain --pod haproxy-node1 -n kube-system --from FOLDER/all.yaml', code: 0, says: ANONYMOUS },
    {
      args: 'doctor haproxy-node1 -n kube-system --from FOLDER/all.yaml',
      code: 1,
      says: /broken +credential .*the registry asks for one\n\nA static pod cannot list Secrets: put an entry for registry\.acme\.example/,
      never: /create it again|kind: ServiceAccount/,
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
      code: 1,
      says: /broken +registry .*short name[\s\S]*docker\.io\/library\/alpine/,
    },
    {
      args: 'doctor --all -n shop --from FOLDER/all.json',
      code: 1,
      says: /^1 pod in namespace "shop" fails/,
    },
  ],
  '07-plain-http': [
    {
      args: 'doctor web -n shop --from FOLDER/all.json',
      code: 1,
      says: /broken +registry .*registry\.lab\.example:5000 speaks HTTP[\s\S]*insecure/,
      never: /does not trust/,
    },
    {
      args: 'doctor --all -n shop --from FOLDER/all.json',
      code: 1,
      says: /registry\.lab\.example:5000 speaks HTTP/,
    },
  ],
  '09-newline': [
    { args: 'validate FOLDER/config.json', code: 0, says: /warning: .*line feed/ },
    { args: 'validate --strict FOLDER/config.json', code: 1, says: /warning: .*line feed/ },
    { args: 'validate FOLDER/crlf.json', code: 0, says: /warning: .*line feed/ },
    { args: 'validate FOLDER/up.json', code: 0, says: /warning: .*line feed/ },
    { args: 'validate FOLDER/space.json', code: 0, says: /warning: .*blank at an end/ },
    // The kubelet refuses the whole document.
    { args: 'validate FOLDER/twice.json', code: 1, says: /error: .*can pull no image at all/ },
    { args: 'validate FOLDER/secret.yaml', code: 0, says: /warning: .*line feed/ },
  ],
  '19-allowed-registries': [
    {
      args: 'explain deploy/op -n shop --from FOLDER/all.yaml',
      code: 1,
      says: /error: .*pulled from nowhere: registry\.redhat\.io\/\S+ rejected by the policy/,
    },
    {
      args: 'doctor deploy/op -n shop --from FOLDER/all.yaml',
      code: 1,
      says: /broken +places .*registry\.redhat\.io\/\S+ rejected by the policy/,
    },
    {
      args: `mirrors ${DENIED} --for node --from FOLDER/all.yaml`,
      code: 1,
      says: /mirror, not tried: rejected by the policy/,
    },
    {
      args: 'mirrors --what-if FOLDER/what-if-image.txt --in-use --from FOLDER/all.yaml',
      code: 0,
      says: /rejected +registry\.redhat\.io\/\S+ +\(Deployment\/shop\/op, for node\)/,
    },
  ],
  '24-x509-in-name': [
    {
      args: 'doctor web -n shop --from FOLDER/all.json',
      code: 1,
      says: /broken +registry .*quay\.io refused/,
      never: /certificate of|does not trust/,
    },
  ],
  '25-no-search-registries': ['empty', 'missing', 'swallowed'].map((name) => ({
    args: `mirrors kicbase/echo-server:1.0 --registries-conf FOLDER/${name}.conf`,
    code: 1,
    says: /pulls from nowhere: short-name "kicbase\/echo-server:1\.0" did not resolve to an alias/,
    never: /docker\.io|registry\.access/,
  })),
  '26-without-namespace': ['', ' -n team'].flatMap((namespace) => [
    {
      args: `explain deploy/ais${namespace} --from FOLDER/out.yaml`,
      code: 0,
      says: /Secret regcred, listed by ServiceAccount\/\w+\/ais-client/,
    },
    {
      args: `doctor deploy/ais${namespace} --from FOLDER/out.yaml`,
      code: 1,
      says: /broken +secrets-there .*"regcred", listed by ServiceAccount\/\w+\/ais-client, does not exist/,
    },
  ]),
  '51-live-pod-empty-list': [
    { args: 'explain --pod job-1 -n team --from FOLDER/all.yaml', code: 0, says: ANONYMOUS },
    {
      args: 'doctor job-1 -n team --from FOLDER/all.yaml',
      code: 1,
      says: /broken +injection .*"quay-robot", and this one does not list it/,
    },
  ],
  '54-ecr-expired': [
    {
      args: 'explain --pod train-0 -n ml --from FOLDER/all.yaml',
      code: 0,
      says: /has expired at 2026-11-23T11:20:18Z/,
    },
    {
      args: 'doctor train-0 -n ml --from FOLDER/all.yaml',
      code: 1,
      says: /broken +credential .*Secret\/ml\/ecr.*has expired at 2026-11-23T11:20:18Z/,
    },
    { args: 'validate FOLDER/all.yaml', code: 0, says: /warning: .*has expired at 2026-11-23T11:20:18Z/ },
    {
      args: 'report --from FOLDER/all.yaml --output json',
      code: 1,
      says: /has expired at 2026-11-23T11:20:18Z/,
    },
  ],
};

for (const folder of readdirSync(here)
  .filter((name) => /^\d/.test(name))
  .sort())
  test(folder, async () => {
    const runs = RUNS[folder] ?? [];
    assert.ok(runs.length > 0, 'a folder without a run proves nothing');
    for (const { args, code, says, never } of runs) {
      const ran = await runInProcess(args.replaceAll('FOLDER', join(here, folder)).split(' '));
      const said = `${ran.stdout}${ran.stderr}`;
      assert.match(said, says, args);
      if (never !== undefined) assert.doesNotMatch(said, never, args);
      assert.equal(ran.code, code, `${args}\n${said}`);
    }
  });

test.run();
