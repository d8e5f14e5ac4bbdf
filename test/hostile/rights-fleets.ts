/** Fleets whose accounts, roles, bindings and policies are held in goldens. */
import type { FleetInput } from '../../charts/mod.ts';

export const IMAGE = 'registry.example.com/pullwright:0.1.0';
export const hub: FleetInput = {
  image: IMAGE,
  clusters: [
    {
      name: 'hub',
      kind: 'management',
      reconciler: { kubeconfigSecret: 'pullwright-kubeconfig' },
      systems: { 'global-pull-secret': {}, 'registry-overrides': {}, verify: {} },
    },
    {
      name: 'guest',
      kind: 'hosted',
      management: 'hub',
      hostedCluster: { serviceAccount: { namespace: 'pullwright-system', name: 'pullwright-reconciler' } },
      systems: {
        'global-pull-secret': {},
        'registry-overrides': {},
        'pull-secret-injection': {},
        'credential-provider': { executable: {} },
      },
    },
  ],
};
export const adapterSection = {
  'pull-secret-adapter': {
    api: 'https://hyperfleet.example.com',
    gcpProject: 'project',
    jobGoogleServiceAccount: 'job@project.iam.gserviceaccount.com',
    caConfigMap: 'authorities',
    adapterOptions: { jobEnv: { IAM_CREDENTIALS_ENDPOINT: 'https://iam.example.com' } },
  },
} as const;
export const full: FleetInput = {
  image: IMAGE,
  clusters: [
    {
      name: 'full',
      path: '.',
      systems: {
        'global-pull-secret': {},
        'pull-secret-injection': { admission: 'webhook', certificates: { kind: 'service-ca' } },
        'credential-provider': { installer: { report: true } },
        ...adapterSection,
        verify: {},
      },
    },
  ],
};
export const discovery: FleetInput = {
  image: IMAGE,
  clusters: [
    {
      name: 'discovery',
      path: '.',
      kind: 'management',
      discovery: true,
      systems: { 'global-pull-secret': {}, 'registry-overrides': {}, verify: {} },
    },
  ],
};

/** Everything that can be named is named. */
export const named: FleetInput = {
  image: IMAGE,
  clusters: [
    {
      name: 'named',
      path: '.',
      systems: {
        'pull-secret-injection': {
          namespaces: ['platform', 'shop'],
          secretNames: ['reg'],
          profiles: [
            {
              name: 'team',
              spec: {
                namespaceSelector: {},
                selector: {},
                secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }],
              },
            },
          ],
        },
        verify: { namespaces: ['shop'], secretNames: ['reg'] },
      },
    },
  ],
};
