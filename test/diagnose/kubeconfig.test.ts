/** The few lines of a kubeconfig that the credential provider reads, held against the YAML library. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { currentCluster, plainKubeconfig } from '../../runtime/credential-provider/plugin/kubeconfig.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('kubeconfig');

const KUBEADM = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTg==
    server: https://10.99.0.10:6443
    tls-server-name: "kubernetes.default.svc"
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: system:node:node1
  name: system:node:node1@kubernetes
current-context: system:node:node1@kubernetes
kind: Config
preferences: {}
users:
- name: system:node:node1
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem
`;
const INDENTED = `---
# of the machine
apiVersion: v1
kind: Config
clusters:
  -   cluster:
        server: 'https://[fd00::1]:6443'
        certificate-authority: pki/ca.crt
      name: b
  - name: a
    cluster: 
      server: https://a.example.com
contexts:
  - name: x
    context:
      cluster: a
current-context: x
users:
  - name: u
    user:
      exec:
        args:
          - --region
          - eu-west-1
          - eks#1
        command: aws-iam-authenticator
`;

interface Row extends Case {
  readonly text: string;
  readonly server: string | undefined;
  readonly isPlain: boolean;
}

const rows: readonly Row[] = [
  {
    name: 'of kubeadm',
    reason: 'block YAML',
    text: KUBEADM,
    server: 'https://10.99.0.10:6443',
    isPlain: true,
  },
  {
    name: 'indented lists',
    reason: 'as other tools write',
    text: INDENTED,
    server: 'https://a.example.com',
    isPlain: true,
  },
  {
    name: 'JSON',
    reason: 'a kubeconfig may be JSON',
    text: JSON.stringify(parse(KUBEADM)),
    server: 'https://10.99.0.10:6443',
    isPlain: true,
  },
  {
    name: 'no current context, one cluster',
    reason: 'there is nothing else to choose',
    text: 'clusters:\n- cluster:\n    server: https://a\n  name: a\n',
    server: 'https://a',
    isPlain: true,
  },
  {
    name: 'no current context, two clusters',
    reason: 'none is guessed',
    text: 'clusters:\n- cluster:\n    server: https://a\n  name: a\n- cluster:\n    server: https://b\n  name: b\n',
    server: undefined,
    isPlain: true,
  },
  {
    name: 'a context that is not there',
    reason: 'none is guessed',
    text: KUBEADM.replace('current-context: system:node:node1@kubernetes', 'current-context: other'),
    server: undefined,
    isPlain: true,
  },
  {
    name: 'flow maps',
    reason: 'a parser is needed',
    text: 'clusters: [{name: a, cluster: {server: "https://a"}}]\n',
    server: 'https://a',
    isPlain: false,
  },
  {
    name: 'block text',
    reason: 'a parser is needed',
    text: 'clusters:\n- cluster:\n    server: >-\n      https://a\n  name: a\n',
    server: 'https://a',
    isPlain: false,
  },
  {
    name: 'anchors',
    reason: 'a parser is needed',
    text: 'clusters:\n- cluster: &c\n    server: https://a\n  name: a\n',
    server: 'https://a',
    isPlain: false,
  },
  {
    name: 'a comment behind a value',
    reason: 'a parser is needed',
    text: 'clusters:\n- cluster:\n    server: https://a # here\n  name: a\n',
    server: 'https://a',
    isPlain: false,
  },
  {
    name: 'a text over two lines',
    reason: 'a parser is needed',
    text: 'clusters:\n- cluster:\n    server: https://a\n      b\n  name: a\n',
    server: 'https://a b',
    isPlain: false,
  },
  { name: 'empty', reason: 'nothing is in it', text: '', server: undefined, isPlain: true },
];

table(test, rows, ({ text, server, isPlain }) => {
  const plain = plainKubeconfig(text);
  assert.equal(plain !== undefined, isPlain);
  assert.equal(currentCluster(plain ?? parse(text))?.server, server);
  // Where no parser is asked, it would have said the same.
  if (plain !== undefined) assert.deepEqual(currentCluster(plain), currentCluster(parse(text)));
});

test('a text that is read without a parser means the same to one, whatever is cut or put in', () => {
  const parts = ['- ', ' ', '#', '"', "'", ': ', '{', '}', '&a ', '|', '\n', '\n  ', 'null', '~'];
  for (let at = 0; at < KUBEADM.length; at += 3)
    for (const part of parts) {
      const text = KUBEADM.slice(0, at) + part + KUBEADM.slice(at);
      const plain = plainKubeconfig(text);
      if (plain === undefined) continue;
      assert.deepEqual(currentCluster(plain), currentCluster(parse(text, { uniqueKeys: true })), text);
    }
});
test.run();
