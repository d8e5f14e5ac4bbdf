// deadline: 240 s
/** Whoever shares the folder that a command writes to chooses neither where the files go nor who reads them. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { writeTree } from '../../charts/output.ts';
import { plantedAuth } from '../support/canary.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { type ProcessResult, runMain, runProcess } from '../support/process.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = new URL('../..', import.meta.url).pathname;
const FILE = 'hosted/kube-system/secret-global-pull-secret.yaml';

function secret(namespace: string, name: string, host: string): object {
  return pullSecretObject({ namespace, name }, { auths: { [host]: { auth: plantedAuth(host) } } });
}

const CLUSTER = [
  secret('openshift-config', 'pull-secret', 'quay.io'),
  secret('kube-system', 'additional-pull-secret', 'team.example'),
];

interface Place {
  readonly work: string;
  readonly to: string;
  /** Another owner's folder with one file. */
  readonly elsewhere: string;
}

async function inPlace(use: (place: Place) => Promise<void>): Promise<void> {
  const work = tempFolder();
  const elsewhere = join(work, 'elsewhere');
  for (const folder of ['in', 'to', 'elsewhere']) mkdirSync(join(work, folder));
  writeFileSync(join(elsewhere, 'precious.yaml'), 'precious');
  await use({ work, to: join(work, 'to'), elsewhere });
}

async function reconcile({ work, to }: Place, more = ['--with-secrets']): Promise<ProcessResult> {
  const list = { apiVersion: 'v1', kind: 'List', items: CLUSTER };
  writeFileSync(join(work, 'in/all.json'), JSON.stringify(list));
  const program = [process.execPath, join(root, 'main.ts')];
  return runProcess([...program, 'reconcile', '--from', join(work, 'in'), '--to', to, ...more], {
    cwd: work,
    deadlineMs: 60_000,
  });
}

test('a file that others may read gives way to one that only the owner may', () =>
  inPlace(async (place) => {
    await reconcile(place, []);
    chmodSync(join(place.to, FILE), 0o666);
    const before = statSync(join(place.to, FILE));
    const ran = await reconcile(place);
    assert.equal(ran.code, 0, ran.stderr);
    const after = statSync(join(place.to, FILE));
    assert.equal(after.mode & 0o777, 0o600);
    assert.notEqual(after.ino, before.ino, 'who has the old file open reads no new value');
    const names = readdirSync(join(place.to, 'hosted/kube-system'));
    assert.ok(!names.some((name) => name.includes('tmp')));
  }));

test('without values a file keeps the mode that it has', () =>
  inPlace(async (place) => {
    await reconcile(place, []);
    chmodSync(join(place.to, FILE), 0o640);
    await reconcile(place, []);
    assert.equal(statSync(join(place.to, FILE)).mode & 0o777, 0o640);
  }));

test.asRoot('values are not given to the owner of the file that stood there', () =>
  inPlace(async (place) => {
    await reconcile(place);
    chownSync(join(place.to, FILE), 65_534, 65_534);
    await reconcile(place);
    const { uid, mode } = statSync(join(place.to, FILE));
    assert.deepEqual([uid, mode & 0o777], [0, 0o600]);
  }),
);

interface Planted extends Case {
  readonly plant: (place: Place) => void;
}

table(
  test,
  [
    {
      name: 'a link in place of a file',
      reason: 'its target would be written, or another file read by its owner',
      plant: ({ to, elsewhere }) => {
        mkdirSync(join(to, 'hosted/kube-system'), { recursive: true });
        symlinkSync(join(elsewhere, 'precious.yaml'), join(to, FILE));
      },
    },
    {
      name: 'a link that points to nothing yet',
      reason: 'the file would be made at its target',
      plant: ({ to, elsewhere }) => {
        mkdirSync(join(to, 'hosted/kube-system'), { recursive: true });
        symlinkSync(join(elsewhere, 'new.yaml'), join(to, FILE));
      },
    },
    {
      name: 'a link in place of the folder of a namespace',
      reason: 'all files of the namespace would go there',
      plant: ({ to, elsewhere }) => {
        mkdirSync(join(to, 'hosted'));
        symlinkSync(elsewhere, join(to, 'hosted/kube-system'));
      },
    },
    {
      name: 'a link in place of the folder of a role',
      reason: 'a folder further up is a way too',
      plant: ({ to, elsewhere }) => {
        symlinkSync(elsewhere, join(to, 'hosted'));
      },
    },
  ] satisfies Planted[],
  async ({ plant }) => {
    for (const more of [[], ['--with-secrets']])
      await inPlace(async (place) => {
        plant(place);
        const ran = await reconcile(place, more);
        assert.equal(ran.code, 1, ran.stdout + ran.stderr);
        assert.match(ran.stderr, /(has|have) files that were not rendered/);
        assert.deepEqual(readdirSync(place.elsewhere), ['precious.yaml']);
        assert.equal(readFileSync(join(place.elsewhere, 'precious.yaml'), 'utf8'), 'precious');
      });
  },
);

test('--to may itself be a link to a folder', () =>
  inPlace(async (place) => {
    symlinkSync(place.to, join(place.work, 'link'));
    const ran = await reconcile({ ...place, to: join(place.work, 'link') });
    assert.equal(ran.code, 0, ran.stderr);
    assert.ok(lstatSync(join(place.to, FILE)).isFile());
  }));

interface WorkTree extends Case {
  /** Makes the work tree, and gives what `--to` is. */
  readonly plant: (place: Place) => string;
}

table(
  test,
  [
    {
      name: 'a link into the work tree',
      reason: 'the path has no work tree above it, the folder has',
      plant: ({ work }) => {
        mkdirSync(join(work, 'repo/.git'), { recursive: true });
        mkdirSync(join(work, 'repo/out'));
        symlinkSync(join(work, 'repo/out'), join(work, 'link'));
        return join(work, 'link');
      },
    },
    {
      name: 'a folder that is not there yet, behind a link into the work tree',
      reason: 'what is not there has no real path',
      plant: ({ work }) => {
        mkdirSync(join(work, 'repo/.git'), { recursive: true });
        symlinkSync(join(work, 'repo'), join(work, 'link'));
        return join(work, 'link/new/er');
      },
    },
    {
      name: 'a work tree below the folder',
      reason: 'a checkout can stand where the files of a namespace go',
      plant: ({ to }) => {
        mkdirSync(join(to, 'hosted/kube-system/.git'), { recursive: true });
        return to;
      },
    },
  ] satisfies WorkTree[],
  ({ plant }) =>
    inPlace(async (place) => {
      const to = plant(place);
      const ran = await reconcile({ ...place, to });
      assert.equal(ran.code, 1, ran.stdout + ran.stderr);
      assert.match(ran.stderr, /it is inside the git work tree/);
      assert.ok(!existsSync(join(to, FILE)));
    }),
);

/** Two hosted clusters, the folders of whose objects are named as their control planes say. */
function hosted({ work }: Place, clusters: readonly string[]): string[] {
  const planes = clusters.map((cluster, index) =>
    meta('hypershift.openshift.io/v1beta1 HostedControlPlane', {
      namespace: `plane-${index}`,
      name: 'x',
      annotations: { 'hypershift.openshift.io/cluster': cluster },
    }),
  );
  const platform = clusters.map((_, index) => secret(`plane-${index}`, 'pull-secret', 'quay.io'));
  mkdirSync(join(work, 'management'));
  const items = [...planes, ...platform];
  writeFileSync(join(work, 'management/all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  for (const cluster of clusters.filter((name) => !name.startsWith('..'))) {
    const folder = join(work, 'in', cluster);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'web.json'), JSON.stringify(meta('v1 Namespace', { name: 'web' })));
  }
  return ['--management', join(work, 'management'), '--with-secrets'];
}

test('a hosted cluster whose folder below --to is a link is not written there', () =>
  inPlace(async (place) => {
    const more = hosted(place, ['clusters/a', 'clusters/b']);
    mkdirSync(join(place.to, 'clusters'));
    symlinkSync(place.elsewhere, join(place.to, 'clusters/b'));
    const ran = await reconcile(place, more);
    assert.equal(ran.code, 1, ran.stdout + ran.stderr);
    assert.match(ran.stderr, /files that were not rendered: clusters\/b\//);
    assert.deepEqual(readdirSync(place.elsewhere), ['precious.yaml']);
  }));

test('hosted clusters are written each below its name', () =>
  inPlace(async (place) => {
    const ran = await reconcile(place, hosted(place, ['clusters/a', 'clusters/b']));
    assert.equal(ran.code, 0, ran.stderr);
    assert.deepEqual(readdirSync(join(place.to, 'clusters')), ['a', 'b']);
    assert.ok(existsSync(join(place.to, 'clusters/a/hosted')));
  }));

test('a run for one hosted cluster leaves what a run for all wrote', async () => {
  const to = tempFolder();
  const fleet = join(root, 'examples/fleet');
  const words = ['reconcile', '--from', join(fleet, 'hosted'), '--management', join(fleet, 'management')];
  for (const more of [[], ['--hosted-cluster', 'clusters/edge']])
    await runMain([...words, '--to', to, ...more], {
      deadlineMs: 60_000,
    });
  assert.deepEqual(readdirSync(to).sort(), ['clusters', 'hosted', 'management']);
  assert.deepEqual(readdirSync(join(to, 'clusters')).sort(), ['edge', 'prod', 'stage']);
});

test('a hosted cluster whose name leads elsewhere is neither read nor written there', () =>
  inPlace(async (place) => {
    const ran = await reconcile(place, hosted(place, ['clusters/a', '../elsewhere']));
    assert.equal(ran.code, 1, ran.stdout + ran.stderr);
    assert.match(ran.stderr, /hosted cluster "\.\." cannot be part of a file name/);
    assert.deepEqual(readdirSync(place.elsewhere), ['precious.yaml']);
  }));

test('synth --overwrite takes the place of a link, and leaves alone what is behind it', () =>
  inPlace(async ({ to, elsewhere }) => {
    symlinkSync(elsewhere, join(to, 'a'));
    writeTree(to, new Map([['a/precious.yaml', 'kind: X\n']]), { overwrite: true });
    assert.equal(readFileSync(join(elsewhere, 'precious.yaml'), 'utf8'), 'precious');
    assert.match(readFileSync(join(to, 'a/precious.yaml'), 'utf8'), /kind: X/);
    return Promise.resolve();
  }));
