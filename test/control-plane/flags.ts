/** Command lines of etcd and kube-apiserver. */
import { ISSUER } from './users.ts';

export function etcdFlags(folder: string, client: string, peer: string): readonly string[] {
  return [
    `--data-dir=${folder}/etcd`,
    '--unsafe-no-fsync',
    '--log-level=warn',
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
  ];
}

/** Cluster IP of the Service `kubernetes`: the first of the range. */
export const SERVICE_ADDRESS = '10.96.0.1';

export function apiServerFlags(
  folder: string,
  etcd: string,
  { port, nodeAddress }: { readonly port: number; readonly nodeAddress: string | undefined },
): readonly string[] {
  return [
    `--etcd-servers=${etcd}`,
    '--etcd-compaction-interval=0',
    ...(nodeAddress === undefined
      ? ['--bind-address=127.0.0.1', '--authorization-mode=RBAC']
      : [
          '--bind-address=0.0.0.0',
          `--advertise-address=${nodeAddress}`,
          '--authorization-mode=Node,RBAC',
          '--enable-admission-plugins=NodeRestriction',
        ]),
    `--secure-port=${port}`,
    `--tls-cert-file=${folder}/serving.crt`,
    `--tls-private-key-file=${folder}/serving.key`,
    `--client-ca-file=${folder}/ca.crt`,
    `--service-account-issuer=${ISSUER}`,
    `--service-account-key-file=${folder}/sa.pub`,
    `--service-account-signing-key-file=${folder}/sa.key`,
    '--service-cluster-ip-range=10.96.0.0/24',
    '--endpoint-reconciler-type=none',
    '--allow-privileged=true',
    '--profiling=false',
  ];
}
