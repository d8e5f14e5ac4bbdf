/** The plan of the installer for a node, from the API server and the host. Writes nothing. */
import { existsSync } from 'node:fs';
import { PullwrightError } from '../../core/errors.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer, type InformerState } from '../../kube/informer.ts';
import { podClient } from '../../node/report.ts';
import { type LoadedService, systemdOverBus } from '../../node/systemd.ts';
import { kubeletArguments, kubeletCommand, serviceSettings } from '../kubelet-unit.ts';
import { CREDENTIAL_PROVIDER } from '../platform.ts';
import { SECRETS_ANNOTATION } from '../plugin/secrets.ts';
import { dropInFile, type HostPlaces, read, readEnvironment, readLoadedUnit, readUnit } from './host.ts';
import { MANAGED_MARKS } from './managed.ts';
import type { PlaceInput } from './place.ts';
import {
  type InstallInput,
  type InstallPlan,
  kubeletPointers,
  planInstall,
  planNodeUninstall,
  withKubeconfig,
} from './plan.ts';

export interface WantedOptions extends HostPlaces {
  readonly secretAnnotation: boolean;
  /** Arguments of the executable, as they go into the kubelet's file. */
  readonly providerArgs: readonly string[];
  readonly nodeName: string;
  readonly serviceAccountDir: string;
  /** Also where another system manages the node, or wrote the drop-in. */
  readonly takeOver: boolean;
  /** Uninstall; sends no request to the API server. */
  readonly uninstall: boolean;
}

export type Env = Readonly<Record<string, string | undefined>>;

/** Reads, and decides. Rejects with the error of the failed request. */
export async function askWanted(options: WantedOptions, env: Env): Promise<InstallPlan> {
  const { root, configDir, takeOver } = options;
  const presentDropIn = read('', dropInFile(options))?.text;
  if (options.uninstall)
    return planNodeUninstall(presentDropIn, options.binDir ?? CREDENTIAL_PROVIDER.binDir, takeOver);
  const client = await podClient(PROGRAM, env, options.serviceAccountDir);
  const { node, matchImages } = await asked(client, options.nodeName).finally(() => client.close());
  const kubelet = await loadedKubelet(options);
  const { words, pointers, ...unit } = readKubelet(options, kubelet);
  const isThere = (path: string): boolean => existsSync(root + path);
  return planInstall({
    node,
    matchImages,
    ...(options.secretAnnotation ? { annotationKeys: [SECRETS_ANNOTATION] } : {}),
    ...unit,
    args: withKubeconfig(options.providerArgs, kubelet?.commandLine || words, isThere),
    pointers: { ...pointers, binDir: options.binDir ?? pointers.binDir ?? CREDENTIAL_PROVIDER.binDir },
    present: pointers.config === undefined ? undefined : read(root, pointers.config)?.text,
    presentDropIn,
    marks: MANAGED_MARKS.filter(isThere),
    takeOver,
    configDir,
  });
}

/** The kubelet's service; undefined where systemd has none of the name, or without a bus, as in a folder. */
async function loadedKubelet({ busSocket, unit }: HostPlaces): Promise<LoadedService | undefined> {
  try {
    return await systemdOverBus({ socket: busSocket }).service(unit);
  } catch (error) {
    if (error instanceof PullwrightError && error.code === 'BusUnreachable') return undefined;
    throw error;
  }
}

/** The unit as systemd has it; as its files say where systemd has not read them yet. */
function readKubelet(
  places: HostPlaces,
  kubelet: LoadedService | undefined,
): PlaceInput & Pick<InstallInput, 'pointers'> & { readonly words: string } {
  const known = kubelet?.isStale === false ? kubelet : undefined;
  const files = known === undefined ? readUnit(places) : readLoadedUnit(places.root, known);
  const environment = readEnvironment(places.root, files, known);
  const settings = serviceSettings(files.map(({ text }) => text));
  const loaded = known && {
    command: { words: known.command, isVerbatim: known.isVerbatim },
    environment: known.environment,
  };
  const words = kubeletArguments(settings, environment, loaded?.command ?? kubeletCommand(settings)).join(
    ' ',
  );
  return { unit: files, environment, words, pointers: kubeletPointers([words]), loaded };
}

async function asked(
  client: KubeClient,
  name: string,
): Promise<{ readonly node: KubeObject; readonly matchImages: readonly string[] }> {
  const node = await client.get({ apiVersion: 'v1', kind: 'Node', name });
  if (node === undefined)
    throw new PullwrightError(`Cannot find Node "${name}": the API server has none of this name`, {
      code: 'NodeMissing',
      hint: 'Set --node-name to the name of the Node object',
    });
  const { group, kind, objectName } = CREDENTIAL_PROVIDER;
  for (const version of VERSIONS) {
    const object = await client.get({ apiVersion: `${group}/${version}`, kind, name: objectName });
    const { matchImages = [] } = (object?.spec ?? {}) as { readonly matchImages?: readonly string[] };
    if (object !== undefined) return { node, matchImages };
  }
  return { node, matchImages: [] };
}

/** Name of the installer in requests, and field manager of its reports. */
export const PROGRAM = 'pullwright-installer';

/** Calls `changed` when the CRIOCredentialProviderConfig may have changed. What it gives ends the watch, and the client. */
export function watchConfig(
  client: KubeClient,
  changed: () => void,
  state: (state: InformerState) => void,
): () => void {
  const { group, kind, objectName } = CREDENTIAL_PROVIDER;
  const informers = VERSIONS.map(
    (version) =>
      new Informer({
        client,
        collection: { apiVersion: `${group}/${version}`, kind },
        selector: { fieldSelector: `metadata.name=${objectName}` },
        sink: { replace: changed, set: changed, delete: changed, state },
      }),
  );
  for (const informer of informers) void informer.run();
  return () => {
    for (const informer of informers) informer.stop();
    client.close();
  };
}

const VERSIONS = ['v1', 'v1alpha1'];
