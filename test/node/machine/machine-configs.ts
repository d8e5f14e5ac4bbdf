/**
 * Stand-in for the Machine Config Operator on a node of a pool: merges the MachineConfigs of the API server, writes their files
 * and units, removes earlier ones, reboots the node, and reports on Node and pool.
 */
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { TestObject } from '../../control-plane/resource-path.ts';
import { NODE_NAME, type NodeMachine } from './node.ts';

/** State of the Machine Config Daemon. */
const CURRENT = '/etc/machine-config-daemon/currentconfig';
const UNITS = '/etc/systemd/system';
const WANTED_BY = `${UNITS}/multi-user.target.wants`;
const ROLE = 'machineconfiguration.openshift.io/role';

interface Unit {
  readonly name: string;
  readonly enabled?: boolean;
  readonly contents?: string;
  readonly dropins?: readonly { readonly name: string; readonly contents: string }[];
}

interface Ignition {
  readonly storage?: {
    readonly files?: readonly {
      readonly path: string;
      readonly mode?: number;
      readonly contents: { readonly source: string };
    }[];
  };
  readonly systemd?: { readonly units?: readonly Unit[] };
}

interface Written {
  readonly text: string;
  readonly mode: number;
}

/** Path to file, or to the unit that a link enables. */
interface NodeConfig {
  readonly files: Readonly<Record<string, Written>>;
  readonly links: Readonly<Record<string, string>>;
}

/** Files and links of MachineConfigs; for one path, the MachineConfig with the later name wins. */
function merged(configs: readonly TestObject[]): NodeConfig {
  const inOrder = configs
    .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .map((object) => (object['spec'] as { config?: Ignition } | undefined)?.config ?? {});
  const units = inOrder.flatMap(({ systemd }) => systemd?.units ?? []);
  const files = inOrder.flatMap(({ storage }) =>
    (storage?.files ?? []).map(({ path, mode = 0o644, contents }) => {
      return [path, { text: decoded(contents.source), mode }] as const;
    }),
  );
  const enabled = units.filter((unit) => unit.enabled === true);
  return {
    files: Object.fromEntries([...files, ...units.flatMap(filesOf)]),
    links: Object.fromEntries(enabled.map(({ name }) => [`${WANTED_BY}/${name}`, `${UNITS}/${name}`])),
  };
}

/** The unit, unless it belongs to the platform, and its drop-ins. */
function filesOf({ name, contents, dropins = [] }: Unit): readonly (readonly [string, Written])[] {
  const of = (path: string, text: string) => [`${UNITS}/${path}`, { text, mode: 0o644 }] as const;
  return [
    ...(contents === undefined ? [] : [of(name, contents)]),
    ...dropins.map((dropin) => of(`${name}.d/${dropin.name}`, dropin.contents)),
  ];
}

/** Source: RFC 2397, in the two forms of MachineConfigs. */
function decoded(source: string): string {
  const [head = '', ...rest] = source.split(',');
  const text = rest.join(',');
  return head.endsWith(';base64') ? Buffer.from(text, 'base64').toString() : decodeURIComponent(text);
}

/** Applies the pool's MachineConfigs and reboots. Returns false when the node is up to date. */
export async function rollPool(node: NodeMachine, pool = 'worker'): Promise<boolean> {
  const query = new URLSearchParams({ labelSelector: `${ROLE}=${pool}` });
  const path = `/apis/machineconfiguration.openshift.io/v1/machineconfigs?${query.toString()}`;
  const { body } = await node.plane.client.request('GET', path);
  const wanted = merged((body.items ?? []) as readonly TestObject[]);
  const text = JSON.stringify(wanted);
  const before = existsSync(CURRENT) ? readFileSync(CURRENT, 'utf8') : '{}';
  if (before === text) return false;
  bring(wanted, JSON.parse(before) as Partial<NodeConfig>);
  writeFileSync(CURRENT, text);
  await node.reboot();
  await say(node, pool, `rendered-${pool}-${createHash('md5').update(text).digest('hex')}`);
  return true;
}

function bring(wanted: NodeConfig, before: Partial<NodeConfig>): void {
  const had = [...Object.keys(before.files ?? {}), ...Object.keys(before.links ?? {})];
  for (const path of had) rmSync(path, { force: true });
  for (const [path, { text, mode }] of Object.entries(wanted.files)) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    chmodSync(path, mode);
  }
  for (const [path, target] of Object.entries(wanted.links)) {
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(target, path);
  }
}

/** Status of a pool whose nodes all have the configuration. */
async function say(node: NodeMachine, pool: string, rendered: string): Promise<void> {
  const at = 'machineconfiguration.openshift.io';
  const annotations = {
    [`${at}/currentConfig`]: rendered,
    [`${at}/desiredConfig`]: rendered,
    [`${at}/state`]: 'Done',
  };
  const merge = 'application/merge-patch+json';
  await node.plane.client.request(
    'PATCH',
    `/api/v1/nodes/${NODE_NAME}`,
    { metadata: { annotations } },
    merge,
  );
  const status = {
    configuration: { name: rendered },
    machineCount: 1,
    readyMachineCount: 1,
    updatedMachineCount: 1,
    unavailableMachineCount: 0,
    degradedMachineCount: 0,
    conditions: [
      { type: 'Updated', status: 'True' },
      { type: 'Updating', status: 'False' },
      { type: 'Degraded', status: 'False' },
    ],
  };
  await node.plane.client.request(
    'PATCH',
    `/apis/${at}/v1/machineconfigpools/${pool}/status`,
    { status },
    merge,
  );
}
