/** Fills the volumes of a pod, as a kubelet does: from Secrets, ConfigMaps, the downward API, and with tokens that the API server gives. */
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ControlPlane } from '../control-plane/control-plane.ts';

interface Item {
  readonly key: string;
  readonly path: string;
}

interface Source {
  readonly secret?: {
    readonly secretName?: string;
    readonly name?: string;
    readonly items?: readonly Item[];
  };
  readonly configMap?: { readonly name: string; readonly items?: readonly Item[] };
  readonly serviceAccountToken?: {
    readonly audience?: string;
    readonly expirationSeconds?: number;
    readonly path: string;
  };
  readonly downwardAPI?: { readonly items: readonly { readonly path: string }[] };
}

export interface Volume extends Source {
  readonly name: string;
  readonly emptyDir?: object;
  readonly projected?: { readonly sources: readonly Source[] };
}

interface PodIdentity {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly spec: { readonly serviceAccountName: string };
}

/** Something that the pod mounts is not there; a kubelet tries again. */
export class NotMounted extends Error {}

export class VolumeWriter {
  readonly #plane: ControlPlane;
  readonly #namespace: string;
  readonly #pod: PodIdentity;
  /** Names of volumes with a token in them. */
  readonly tokens: Set<string> = new Set();

  constructor(plane: ControlPlane, namespace: string, pod: PodIdentity) {
    this.#plane = plane;
    this.#namespace = namespace;
    this.#pod = pod;
  }

  async write(volume: Volume, folder: string): Promise<void> {
    mkdirSync(folder, { recursive: true });
    // Same mode as an emptyDir: writable for every user of the pod.
    if (volume.emptyDir !== undefined) chmodSync(folder, 0o777);
    for (const source of volume.projected?.sources ?? [volume]) {
      if (source.serviceAccountToken !== undefined) this.tokens.add(volume.name);
      for (const [path, content] of Object.entries(await this.#files(source))) {
        rmSync(join(folder, path), { force: true });
        writeFileSync(join(folder, path), content, { mode: 0o444 });
      }
    }
  }

  /** @throws NotMounted when it is not there */
  async secret(name: string): Promise<Readonly<Record<string, Buffer>>> {
    const data = await this.#data('secrets', name);
    return Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64')]),
    );
  }

  async #files(source: Source): Promise<Readonly<Record<string, string | Buffer>>> {
    const { secret, configMap, serviceAccountToken: token, downwardAPI } = source;
    if (secret !== undefined)
      return picked(await this.secret(secret.secretName ?? secret.name ?? ''), secret.items);
    if (configMap !== undefined)
      return picked(await this.#data('configmaps', configMap.name), configMap.items);
    if (token !== undefined) return { [token.path]: await this.#token(token) };
    if (downwardAPI !== undefined)
      return Object.fromEntries(downwardAPI.items.map(({ path }) => [path, this.#namespace]));
    return {};
  }

  async #data(plural: string, name: string): Promise<Readonly<Record<string, string>>> {
    const path = `/api/v1/namespaces/${this.#namespace}/${plural}/${name}`;
    const { status, body } = await this.#plane.client.request('GET', path);
    if (status !== 200) throw new NotMounted(`The pod waits for ${plural}/${name}: ${status}`);
    return (body as { readonly data?: Record<string, string> }).data ?? {};
  }

  async #token(token: NonNullable<Source['serviceAccountToken']>): Promise<string> {
    const { serviceAccountName } = this.#pod.spec;
    const path = `/api/v1/namespaces/${this.#namespace}/serviceaccounts/${serviceAccountName}/token`;
    const { name, uid } = this.#pod.metadata;
    const { status, body } = await this.#plane.client.request('POST', path, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        ...(token.audience === undefined ? {} : { audiences: [token.audience] }),
        expirationSeconds: token.expirationSeconds ?? 3600,
        boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name, uid },
      },
    });
    if (status !== 201) throw new NotMounted(`No token for the pod: ${status} ${JSON.stringify(body)}`);
    return (body as unknown as { readonly status: { readonly token: string } }).status.token;
  }
}

function picked<T>(
  data: Readonly<Record<string, T>>,
  items: readonly Item[] | undefined,
): Readonly<Record<string, T>> {
  if (items === undefined) return data;
  return Object.fromEntries(
    items.flatMap(({ key, path }) => {
      const value = data[key];
      return value === undefined ? [] : [[path, value] as const];
    }),
  );
}
