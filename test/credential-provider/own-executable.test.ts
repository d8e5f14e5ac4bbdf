// deadline: 180 s
/** The MachineConfig with our executable, on a file system as on OpenShift's nodes: `/usr` is read-only. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { credentialProviderSystem } from '../../charts/credential-provider/chart.ts';
import { executableMachineConfigs } from '../../runtime/credential-provider/objects.ts';
import { parseReconcilerOptions, schema } from '../../runtime/credential-provider/options.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { hostedConfig } from './support/reconcile-once.ts';

interface IgnitionConfig {
  readonly storage: {
    readonly files: readonly {
      readonly path: string;
      readonly mode: number;
      readonly contents: { readonly source: string };
    }[];
  };
  readonly systemd: {
    readonly units: readonly {
      readonly name: string;
      readonly enabled: boolean;
      readonly contents: string;
    }[];
  };
}

const IMAGE = 'registry.example.com/pullwright/pullwright:0.1.0';

function rendered(image = IMAGE): IgnitionConfig {
  const [config] = executableMachineConfigs({
    pools: ['worker'],
    image,
    settings: { secrets: 'named', kubeconfigs: ['/a', '/b'] },
  });
  return (config as unknown as { readonly spec: { readonly config: IgnitionConfig } }).spec.config;
}

/** Stand-in for podman: accepts only the calls of the script, and copies a file from "the image". */
const PODMAN = `#!/bin/bash
echo "$*" >> "$NODE/podman.log"
[ ! -e "$NODE/no-registry" ] || { echo "Error: pinging container registry: no route to host" >&2; exit 125; }
case "$1 $#" in
  "pull 5") [ "$2 $3 $4" = "--quiet --authfile /var/lib/kubelet/config.json" ] && echo 0123 ;;
  "create 2") echo c0ffee ;;
  "cp 3") [ "\${2%%:*}" = c0ffee ] && cp "$NODE/image\${2#*:}" "$3" ;;
  "rm 3") [ "$2 $3" = "--force c0ffee" ] ;;
  *) exit 125 ;;
esac
`;

/** Lays out the root of a node, enters it read-only, and runs `steps` in it as the unit runs its script. */
async function onNode(
  steps: string,
): Promise<{ readonly stdout: string; readonly stderr: string; readonly code: number | null }> {
  const node = tempFolder();
  const plugins = '/usr/libexec/kubelet-image-credential-provider-plugins';
  const put = (path: string, text: string, mode: number): void => {
    mkdirSync(dirname(join(node, path)), { recursive: true });
    writeFileSync(join(node, path), text);
    chmodSync(join(node, path), mode);
  };
  put(`platform${plugins}/crio-credential-provider`, '#!/bin/sh\necho platform\n', 0o755);
  put(`platform${plugins}/ecr-credential-provider`, '#!/bin/sh\necho ecr\n', 0o755);
  put('image/usr/bin/pullwright', '#!/bin/sh\necho "ours $1 $2"\n', 0o755);
  put('bin/podman', PODMAN, 0o755);
  for (const { path, mode, contents } of rendered().storage.files) {
    // /usr/local is a link into /var there.
    assert.ok(path.startsWith('/usr/local/'), path);
    put(
      `varlocal/${path.slice('/usr/local/'.length)}`,
      Buffer.from(contents.source.split(',')[1] ?? '', 'base64').toString(),
      mode,
    );
  }
  mkdirSync(join(node, 'up'));
  mkdirSync(join(node, 'work'));
  const program = `set -eu
mount -t tmpfs tmpfs "$NODE/up" && mkdir "$NODE/up/u" "$NODE/up/w" && mkdir -p "$NODE/up/u/local" "$NODE/up/u/libexec"
cp -r "$NODE/platform/usr/libexec/." "$NODE/up/u/libexec/"
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$NODE/up/u,workdir=$NODE/up/w" /usr
mount -o remount,ro /usr
mount --bind "$NODE/varlocal" /usr/local
export PATH="$NODE/bin:$PATH"
P=${plugins}
deliver() { bash /usr/local/pullwright/deliver-credential-provider; }
${steps}
`;
  const ran = await runProcess(['unshare', '--mount', '--propagation', 'private', 'bash', '-c', program], {
    env: { ...process.env, NODE: node },
  });
  return ran;
}

test.asRoot(
  'ours comes before the platform’s plugin of its name, all others stay, and /usr is not written',
  async () => {
    const { stdout, stderr } = await onNode(`
touch /usr/x 2> /dev/null && echo "writable"
"$P/crio-credential-provider"
deliver
"$P/crio-credential-provider" a b; "$P/ecr-credential-provider"; cat "$P/crio-credential-provider.json"
deliver; "$P/crio-credential-provider" a b; grep -c '^pull' "$NODE/podman.log"; grep -c "$P" /proc/self/mounts
umount -l "$P"; "$P/crio-credential-provider"`);
    assert.equal(stderr, '');
    assert.equal(
      stdout,
      'platform\nours a b\necr\n{\n  "kubeconfig": [\n    "/a",\n    "/b"\n  ],\n  "secrets": "named"\n}\nours a b\n1\n1\nplatform\n',
    );
  },
);

test.asRoot('an image that cannot be had, or does not run here, leaves the platform’s plugin', async () => {
  const { stdout } = await onNode(`
touch "$NODE/no-registry"; deliver 2> "$NODE/said" || echo "failed"; grep -o "no route to host" "$NODE/said"; "$P/crio-credential-provider"
rm "$NODE/no-registry"; printf 'no program' > "$NODE/image/usr/bin/pullwright"
deliver 2> /dev/null || echo "failed"; "$P/crio-credential-provider"; ls /usr/local/pullwright/bin`);
  assert.match(stdout, /^failed\nno route to host\nplatform\nfailed\nplatform\n/);
  assert.ok(
    !stdout.includes('crio-credential-provider\n'),
    'what does not run is under the name of the plugin',
  );
});

test.asRoot('another image is fetched, and what was fetched needs no registry', async () => {
  const { stdout } = await onNode(`
deliver; touch "$NODE/no-registry"; umount -l "$P"; deliver; "$P/crio-credential-provider" 1 2
rm "$NODE/no-registry"; sed -i "s/:0.1.0'/:0.2.0'/" /usr/local/pullwright/deliver-credential-provider
printf '#!/bin/sh\\necho "newer"\\n' > "$NODE/image/usr/bin/pullwright"; deliver; "$P/crio-credential-provider"`);
  assert.equal(stdout, 'ours 1 2\nnewer\n');
});

test('the unit holds no kubelet up', () => {
  const [unit] = rendered().systemd.units;
  assert.equal(unit?.name, 'pullwright-credential-provider.service');
  assert.equal(unit.enabled, true);
  assert.doesNotMatch(unit.contents, /Before=|RequiredBy=|kubelet\.service/);
  assert.throws(() => rendered("a'; rm -rf /"), /must be the name of an image/);
});

test('hosted clusters: the ConfigMap of the NodePools brings it beside the kubelet’s file, or nothing at all', () => {
  const nodes = [{ name: 'w', pool: 'worker' }];
  const made = hostedConfig(IMAGE, { secrets: 'named' }, { platform: 'AWS', nodes });
  const { storage, systemd } = (made.spec as { readonly config: IgnitionConfig }).config;
  assert.deepEqual(
    storage.files.map(({ path, mode }) => [path.slice(path.lastIndexOf('/') + 1), mode]),
    [
      ['ecr-credential-provider.yaml', 0o644],
      ['deliver-credential-provider', 0o755],
      ['crio-credential-provider.json', 0o644],
    ],
  );
  assert.deepEqual(systemd.units, rendered().systemd.units);
  assert.equal(storage.files[1]?.contents.source, rendered().storage.files[0]?.contents.source);
});

test('pools are for stand-alone clusters, and images and options are checked again where they are read', () => {
  const faults = (kind: string, executable: { readonly pools?: string[] }): string =>
    JSON.stringify(credentialProviderSystem.check?.({ executable }, { kind } as never));
  assert.match(faults('hosted', { pools: ['worker'] }), /which has no pools/);
  assert.match(faults('standalone', {}), /expected the names of pools/);
  assert.equal(faults('hosted', {}), '[]');
  assert.equal(faults('standalone', { pools: ['worker'] }), '[]');
  for (const executable of [
    {},
    { image: 'a b' },
    { image: 'a', x: 1 },
    { image: 'a', settings: { authDir: 'rel' } },
  ])
    assert.throws(() => parseReconcilerOptions({ executable }), /executable\.(image|x|settings\.authDir): /);
});

test('the section refuses paths that a list or a unit would read as something else', () => {
  const refused = ['relative', '/a,b', '/a b', '/$(HOME)', "/a'"];
  for (const path of refused)
    assert.equal(schema.safeParse({ provider: { authDir: path } }).success, false, path);
  assert.equal(schema.safeParse({ provider: { authDir: '/run/crio-auth', budgetMs: 99 } }).success, false);
  assert.equal(schema.safeParse({ provider: { authDir: '/run/crio-auth', budgetMs: 100 } }).success, true);
});
