/** Maps a request to the call of Secret Manager v1 or Resource Manager v3, and to the permission that it needs. */
import type { Target } from './secret-store.ts';

export const PERMISSION: Readonly<Record<string, string>> = {
  GetSecret: 'secretmanager.secrets.get',
  CreateSecret: 'secretmanager.secrets.create',
  UpdateSecret: 'secretmanager.secrets.update',
  DeleteSecret: 'secretmanager.secrets.delete',
  AddSecretVersion: 'secretmanager.versions.add',
  AccessSecretVersion: 'secretmanager.versions.access',
  ListSecretVersions: 'secretmanager.versions.list',
  DisableSecretVersion: 'secretmanager.versions.disable',
  DestroySecretVersion: 'secretmanager.versions.destroy',
  GetProject: 'resourcemanager.projects.get',
};

const ADDRESS =
  /^\/v[13]\/projects\/([^/:]+)(?:\/locations\/([^/:]+))?(?:\/secrets(?:\/([^/:]+)(?:\/versions\/([^/:]+))?)?)?/;

export function targetOf(url: URL): Target {
  const match = ADDRESS.exec(url.pathname);
  const [project = '', location = '', secret = '', version = ''] = (match?.slice(1) ?? []).map((part) =>
    decodeURIComponent(part ?? ''),
  );
  return { project, location, secret, version, query: url.searchParams };
}

export function rpcOf(method: string, path: string): string {
  if (path.startsWith('/v3/projects/')) return 'GetProject';
  const verb = /:([a-zA-Z]+)$/.exec(path)?.[1];
  const verbs: Readonly<Record<string, string>> = {
    addVersion: 'AddSecretVersion',
    access: 'AccessSecretVersion',
    disable: 'DisableSecretVersion',
    destroy: 'DestroySecretVersion',
    testIamPermissions: path.includes('/secrets/') ? 'TestIamPermissions' : 'TestProjectPermissions',
  };
  if (verb !== undefined) return verbs[verb] ?? verb;
  if (path.endsWith('/versions')) return 'ListSecretVersions';
  if (path.endsWith('/secrets')) return 'CreateSecret';
  const methods: Readonly<Record<string, string>> = {
    GET: 'GetSecret',
    PATCH: 'UpdateSecret',
    DELETE: 'DeleteSecret',
  };
  return methods[method] ?? method;
}
