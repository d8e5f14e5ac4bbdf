/**
 * The agent's clock a day ahead, an hour without an API server by that clock, and the clock set back. Kubelet and CRI-O read the
 * kernel's time; the agent, which uses glibc, reads that of a preloaded library.
 */
import assert from 'node:assert/strict';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { TestBody } from '../support/suite.ts';
import type { Journey } from './machine/journey.ts';

const CONFIG = '/var/lib/kubelet/config.json';
const CLOCK = '/etc/test-clock';
const LIBRARY = '/usr/lib/*/faketime/libfaketimeMT.so.1';

/** Actions of the fault scene. */
export interface ClockScene {
  /** Changes the password of the registry; returns a function that writes the new Secret. */
  readonly rotated: (mark: string) => Promise<() => Promise<unknown>>;
  /** Expects that a new pod of the tenant pulls and runs. */
  readonly pulls: (name: string) => Promise<void>;
}

export function clockSteps(
  step: (name: string, body: TestBody) => void,
  { node, ok, inOrder }: Journey,
  { rotated, pulls }: ClockScene,
): void {
  const offset = (text: string): void => writeFileSync(`${CLOCK}/offset`, `${text}\n`);
  const arrives = async (mark: string): Promise<void> => {
    const hand = await rotated(mark);
    await hand();
    await pulls(mark);
    await inOrder();
  };

  step("the agent's clock is a day ahead: a rotation arrives all the same", async () => {
    const [library = ''] = globSync(LIBRARY);
    mkdirSync(CLOCK);
    offset('+1d');
    const env = {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: `${CLOCK}/offset`,
      FAKETIME_CACHE_DURATION: '1',
      // Not the monotonic clock: setting it back would extend every timer by a day.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
    const folders = [dirname(library), CLOCK];
    const patch = {
      env: Object.entries(env).map(([name, value]) => ({ name, value })),
      volumeMounts: folders.map((mountPath, index) => ({
        name: `clock-${index}`,
        mountPath,
        readOnly: true,
      })),
    };
    const volumes = folders.map((path, index) => ({ name: `clock-${index}`, hostPath: { path } }));
    await ok(
      `kubectl -n kube-system get daemonset global-pull-secret-syncer -o json |
         jq '.spec.template.spec |= (.volumes += ${JSON.stringify(volumes)} |
           .containers[0].env += ${JSON.stringify(patch.env)} | .containers[0].volumeMounts += ${JSON.stringify(patch.volumeMounts)})' |
         kubectl replace -f -
       kubectl -n kube-system rollout status daemonset/global-pull-secret-syncer --timeout=120s`,
    );
    await arrives('ahead');
  });

  step(
    'an hour without an API server, by that clock: the file stays, and what changed meanwhile arrives',
    async () => {
      const hand = await rotated('away');
      const before = readFileSync(CONFIG);
      await node.plane.apiServer.kill();
      offset('+25h');
      // A restarted agent has no cached state.
      assert.equal(node.system.kill(/pullwright agent/), 1);
      assert.deepEqual(readFileSync(CONFIG), before);
      await node.plane.apiServer.start();
      await hand();
      await pulls('away');
      await inOrder();
    },
  );

  // Restarts in its journal are a day ahead now, and must not count for the rate limit.
  step("the agent's clock is set back by a day: a rotation arrives all the same", async () => {
    offset('+1h');
    await arrives('back');
  });
}
