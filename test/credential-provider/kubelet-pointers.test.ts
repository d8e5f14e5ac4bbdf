/** Where a kubelet looks for providers by the texts that make its command line. */
import assert from 'node:assert/strict';
import { kubeletPointers } from '../../runtime/credential-provider/installer/plan.ts';
import { suite, table } from '../support/suite.ts';

const test = suite('kubeletPointers');

table(
  test,
  [
    { name: 'nowhere', texts: ['ExecStart=/usr/bin/kubelet'], found: {} },
    {
      name: 'an environment file',
      texts: [
        'KUBELET_EXTRA_ARGS="--v=2 --image-credential-provider-config=/a.yaml --image-credential-provider-bin-dir=/b"',
      ],
      found: { config: '/a.yaml', binDir: '/b' },
    },
    {
      name: 'continued lines',
      texts: ['ExecStart=/usr/bin/kubelet \\\n  --image-credential-provider-config /a.yaml'],
      found: { config: '/a.yaml' },
    },
    {
      name: 'a comment',
      texts: ['# --image-credential-provider-config=/a.yaml'],
      found: {},
    },
    {
      name: 'the last one counts',
      texts: ['--image-credential-provider-config=/a.yaml', '--image-credential-provider-config=/c.yaml'],
      found: { config: '/c.yaml' },
    },
  ].map((row) => ({ ...row, reason: 'providers that are there must not be lost' })),
  ({ texts, found }) => assert.deepEqual(kubeletPointers(texts), found),
);

test.run();
