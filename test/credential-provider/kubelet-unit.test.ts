/** Kubelet units as systemd parses them: variables for further flags, and units without one. */
import assert from 'node:assert/strict';
import {
  environmentFiles,
  fileLine,
  flagVariable,
  kubeletArguments,
  kubeletCommand,
  serviceSettings,
  unitLine,
} from '../../runtime/credential-provider/kubelet-unit.ts';
import { table, test } from '../support/suite.ts';

const KUBEADM = [
  '[Unit]\nDescription=kubelet\nExecStart=/not/here\n[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n',
  '[Service]\nEnvironment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/a --kubeconfig=/etc/kubernetes/kubelet.conf"\nEnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env\nEnvironmentFile=-/etc/default/kubelet\nExecStart=\nExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS\n',
];

const WORDS = [
  ['plain', 'blanks divide', '/k  --a\t--b', ['/k', '--a', '--b']],
  ['double quotes', 'blanks stay', '/k "--a=b c"', ['/k', '--a=b c']],
  ['single quotes', 'blanks stay', "/k '--a=b  c'd", ['/k', '--a=b  cd']],
  ['nothing in quotes', 'a word all the same', '/k "" x', ['/k', '', 'x']],
  ['a quoted quote', 'the backslash takes it', '/k "a\\"b"', ['/k', 'a"b']],
  ['a blank behind a backslash', 'it divides nothing', '/k a\\ b', ['/k', 'a b']],
  [
    'comments in a continuation',
    'systemd passes them over',
    '/k \\\n  # --c \\\n; --d\n  --a \\\n  --b',
    ['/k', '--a', '--b'],
  ],
] as const;
table(
  test,
  WORDS.map(([name, reason, command, words]) => ({ name, reason, command, words })),
  ({ command, words }) =>
    assert.deepEqual(kubeletCommand(serviceSettings([`[Service]\nExecStart=${command}\n`]))?.words, words),
);

test('the unit of kubeadm: the last command counts, and its files in order', () => {
  const settings = serviceSettings(KUBEADM);
  assert.equal(kubeletCommand(settings)?.words.at(-1), '$KUBELET_EXTRA_ARGS');
  assert.deepEqual(environmentFiles(settings), [
    '/var/lib/kubelet/kubeadm-flags.env',
    '/etc/default/kubelet',
  ]);
  assert.deepEqual(flagVariable(settings, [], kubeletCommand(settings)), {
    name: 'KUBELET_EXTRA_ARGS',
    value: '',
    isSetByFile: false,
  });
  assert.deepEqual(
    flagVariable(
      settings,
      ['# x\nKUBELET_EXTRA_ARGS=--v=1\n', "KUBELET_EXTRA_ARGS='--v=2'\n"],
      kubeletCommand(settings),
    ),
    { name: 'KUBELET_EXTRA_ARGS', value: '--v=2', isSetByFile: true },
  );
});

test('arguments: files over units, words of a lone variable, the whole value within a word', () => {
  const settings = serviceSettings([
    '[Service]\nEnvironment="A=--x=1 --y" B=unit\nExecStart=/k \\\n # --config=/old \\\n $A --b=${B}\n',
  ]);
  const arguments_ = kubeletArguments(settings, ['B="file s"\n'], kubeletCommand(settings));
  assert.deepEqual(arguments_, ['/k', '--x=1', '--y', '--b=file s']);
});

test('an empty setting takes back what stood before it', () => {
  const reset = serviceSettings([...KUBEADM, '[Service]\nEnvironmentFile=\nExecStart=\n']);
  assert.deepEqual(environmentFiles(reset), []);
  assert.equal(kubeletCommand(reset), undefined);
});

test('what the variable holds in the unit stays, and reads back as it was', () => {
  const held = '--label="a b" --path=C:\\x --share=5%% --lines=a\nb';
  const variable = { name: 'KUBELET_EXTRA_ARGS', value: held, isSetByFile: false };
  const unit = `[Service]\n${unitLine(variable, '--new')}\nExecStart=/usr/bin/kubelet $KUBELET_EXTRA_ARGS\n`;
  const settings = serviceSettings([unit]);
  assert.equal(flagVariable(settings, [], kubeletCommand(settings))?.value, `${held} --new`);
  assert.equal(
    fileLine({ ...variable, value: '--a="b"' }, '--new'),
    'KUBELET_EXTRA_ARGS="--a=\\"b\\" --new"',
  );
});
