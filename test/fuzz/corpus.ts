/** Good inputs, from which the fuzzer makes bad ones. Those with credentials hold planted ones. */
import { plantedAuth, plantedPassword } from '../support/canary.ts';

export const IMAGES: readonly string[] = [
  'nginx',
  'quay.io/team/app:1.2',
  'registry.example.com:5000/a/b/c@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  'localhost/x',
  '[fd00::1]:5000/a',
];
export const AUTHS: string = JSON.stringify({
  auths: {
    'quay.io': { auth: plantedAuth('fuzz') },
    'https://registry.example.com/v1/': {
      username: 'robot',
      password: plantedPassword('fuzz'),
      email: 'a@b',
    },
    'r.io/team': { identitytoken: plantedPassword('token') },
  },
  credHelpers: { 'gcr.io': 'gcloud' },
});
export const REGISTRIES: string = `unqualified-search-registries = ["docker.io"]
[[registry]]
prefix = "*.example.com"
location = "mirror.example.com"
blocked = false
[[registry.mirror]]
location = "m.example.com/a"
pull-from-mirror = "digest-only"
`;
export const PROVIDER: string = `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
  - name: crio-credential-provider
    matchImages: ["*.example.com", "r.io:5000/team"]
    defaultCacheDuration: 1h
    apiVersion: credentialprovider.kubelet.k8s.io/v1
    args: ["--x"]
    env: [{ name: A, value: b }]
`;
export const KUBECONFIG: string = `apiVersion: v1
kind: Config
current-context: c
contexts: [{ name: c, context: { cluster: k, user: u } }]
clusters: [{ name: k, cluster: { server: https://api.example.com:6443, certificate-authority-data: QQ== } }]
users: [{ name: u, user: { token: ${plantedPassword('kubeconfig')} } }]
`;
export const FLEET: string = `image: registry.example.com/pullwright:1
defaults: { systems: { global-pull-secret: { enforce: deny } } }
clusters:
  - { name: management, kind: management }
  - name: prod
    kind: hosted
    management: management
    systems: { global-pull-secret: { agent: { restart: never } } }
`;
export const MANIFESTS: string = `apiVersion: v1
kind: Secret
metadata: { name: a, namespace: b }
data: { .dockerconfigjson: ${Buffer.from(AUTHS).toString('base64')} }
---
{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}]}
`;
export function jsonOf(value: unknown): string {
  return JSON.stringify(value);
}
export const TOKEN: string = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from('{"exp":1900000000}').toString('base64url')}.c2ln`;
