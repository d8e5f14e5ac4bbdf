/** Needs of each of our containers, with the reasons. Tables of `workloads.test.ts`. */
import type { ContainerNeeds } from '../support/container-needs.ts';

export interface Row extends ContainerNeeds {
  /** Why it needs what it has. */
  readonly why: string;
  /** By the name of the fleet or task: what is otherwise there. */
  readonly except?: Readonly<Record<string, Partial<Omit<ContainerNeeds, 'at'>>>>;
}

const UNPRIVILEGED = 'any user but root, capabilities none, root read-only, seccomp';
const ON_NODE = 'user 0, privileged, root read-only, network of the node';

const AGENT_MOUNTS = [
  '/etc/global-pull-secret ro Secret global-pull-secret if any',
  '/etc/original-pull-secret ro Secret original-pull-secret if any',
  '/var/lib/kubelet rw node /var/lib/kubelet (Directory)',
  '/var/run/dbus rw node /var/run/dbus (Directory)',
];
const installerMounts = (authFiles: string): readonly string[] =>
  [
    '/host/etc ro node /etc (Directory)',
    `/host${authFiles} rw node ${authFiles} (DirectoryOrCreate)`,
    '/host/etc/kubernetes/credential-providers rw node /etc/kubernetes/credential-providers (DirectoryOrCreate)',
    '/host/etc/systemd/system rw node /etc/systemd/system (Directory)',
    '/host/usr/lib/systemd/system ro node /usr/lib/systemd/system (Directory)',
    '/host/usr/libexec/kubelet-image-credential-provider-plugins rw node /usr/libexec/kubelet-image-credential-provider-plugins (DirectoryOrCreate)',
    '/host/var/lib/kubelet ro node /var/lib/kubelet (Directory)',
    '/var/run/dbus rw node /var/run/dbus (Directory)',
  ].sort();
/** Of adapter and Sentinel, with every option of a connection. */
const CONNECTIONS = [
  '/etc/pullwright/api ro Secret api-token',
  '/etc/pullwright/broker ro Secret broker',
  '/etc/pullwright/ca ro ConfigMap authorities',
];
const OTHER_AUDIENCE = { mounts: ['/etc/pullwright/api ro token for others'] };
const RESULTS = '/results rw empty';
const DATA = '/var/run/pullwright/pull-secret ro Secret cluster-cls-1-pullsecret-data';

export const ROWS: readonly Row[] = [
  {
    at: 'kube-system/DaemonSet/global-pull-secret-syncer/global-pull-secret-syncer',
    why: 'replaces the kubelet’s config.json, which is root’s, and asks systemd, which takes orders from uid 0 alone; watches two Secrets and books its turn',
    rights: `${ON_NODE}, token of global-pull-secret-syncer`,
    ports: 'probes 947',
    mounts: AGENT_MOUNTS,
    except: {
      options: {
        rights:
          'user 0, capabilities CHOWN DAC_OVERRIDE FOWNER NET_BIND_SERVICE, root read-only, seccomp, network of the node, token of global-pull-secret-syncer',
        ports: 'probes 9999, metrics 9547',
        mounts: [
          '/etc/crio/auth rw node /etc/crio/auth (DirectoryOrCreate)',
          ...AGENT_MOUNTS.slice(0, 2),
          '/etc/pullwright-tls ro Secret agent-tls if any',
          ...AGENT_MOUNTS.slice(2),
        ],
      },
      // The container sends no request to the API server, so it has no token to steal.
      others: { rights: ON_NODE },
    },
  },
  {
    at: 'kube-system/DaemonSet/credential-provider-installer/credential-provider-installer',
    why: 'writes plugin, configuration and drop-in, which are root’s, restarts the kubelet, reads its Node and the configuration object',
    rights: `${ON_NODE}, token of credential-provider-installer`,
    ports: '127.0.0.1:948',
    mounts: installerMounts('/etc/crio/auth'),
    except: { options: { ports: 'metrics 948', mounts: installerMounts('/var/lib/auth') } },
  },
  {
    at: 'pullwright-system/Deployment/pullwright-reconciler/reconciler',
    why: 'speaks to API servers and registries, and answers probes and Prometheus',
    rights: `${UNPRIVILEGED}, token of pullwright-reconciler`,
    ports: 'health 8081, metrics 8080',
    mounts: ['/etc/pullwright ro ConfigMap pullwright-reconciler-config'],
  },
  {
    at: 'pullwright-system/Deployment/pullwright-webhook/webhook',
    why: 'reads profiles and sets, and answers the API server with a certificate',
    rights: `${UNPRIVILEGED}, token of pullwright-webhook`,
    ports: 'webhook 9443, health 8081',
    mounts: ['/etc/pullwright/tls ro Secret pullwright-webhook-tls'],
  },
  {
    at: 'pullwright-system/CronJob/pullwright-verify/verify',
    why: 'reads what pods pull with, and asks registries',
    rights: `${UNPRIVILEGED}, token of pullwright-verify`,
    ports: 'none',
    mounts: [],
    except: { options: { mounts: ['/etc/pullwright/ca ro ConfigMap registry-ca'] } },
  },
  {
    at: 'hyperfleet-system/Deployment/pull-secret-adapter/main',
    why: 'makes Jobs by the API server, and speaks to broker and HyperFleet with what Secrets hold',
    rights: `${UNPRIVILEGED}, token of pull-secret-adapter`,
    ports: 'health 8080, metrics 9090',
    mounts: ['/etc/pullwright/broker ro Secret pull-secret-adapter-broker'],
    except: {
      options: {
        mounts: [...CONNECTIONS, '/etc/pullwright/tenants ro ConfigMap pull-secret-adapter-tenants'],
      },
      others: OTHER_AUDIENCE,
    },
  },
  {
    at: 'hyperfleet-system/Deployment/pull-secret-sentinel/main',
    why: 'speaks to broker and HyperFleet, never to the API server',
    rights: UNPRIVILEGED,
    ports: 'health 8080, metrics 9090',
    mounts: [],
    except: { options: { mounts: CONNECTIONS }, others: OTHER_AUDIENCE },
  },
  {
    at: 'hyperfleet-system/Job/pullsecret-cls-1-store/job',
    why: 'reads one pull secret, writes it to Google and into the namespace of the control plane',
    rights: `${UNPRIVILEGED}, token of pullsecret-adapter-job`,
    ports: 'none',
    mounts: [RESULTS, DATA],
    except: {
      'stores from a variable': { rights: UNPRIVILEGED, mounts: [RESULTS] },
      'stores with authorities': { mounts: ['/etc/pullwright/ca ro ConfigMap authorities', RESULTS, DATA] },
      'stores with federation': {
        mounts: [
          '/etc/pullwright/google ro ConfigMap pullsecret-adapter-job-credentials',
          RESULTS,
          '/var/run/pullwright/google ro token for others',
          DATA,
        ],
      },
    },
  },
  {
    at: 'hyperfleet-system/Job/pullsecret-cls-1-delete/job',
    why: 'takes away what was written, by its places alone',
    rights: `${UNPRIVILEGED}, token of pullsecret-adapter-job`,
    ports: 'none',
    mounts: [RESULTS],
  },
];
