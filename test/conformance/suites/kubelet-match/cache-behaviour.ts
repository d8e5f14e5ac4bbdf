/**
 * When the kubelet runs the plugin again, by what the response says about caching. It is held against a model of the cache, and
 * for the response that we give the answer must be: always.
 */

import { parseGoDuration } from '../../../../runtime/core/go/duration.ts';
import { EMPTY_RESPONSE } from '../../../../runtime/credential-provider/plugin/request.ts';
import {
  executions,
  kubeletTakes,
  type PluginCall,
} from '../../../credential-provider/support/kubelet-response.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Settings {
  readonly cacheKeyType: string;
  readonly cacheDuration: string;
  readonly defaultCacheDuration: string;
}

interface Executed {
  readonly runs: readonly boolean[];
  readonly withOurs: readonly boolean[];
}

const CALLS: Readonly<Record<string, PluginCall>> = {
  exec1_nginx_podA: { image: 'docker.io/library/nginx', pod: 'a', atMs: 0 },
  exec2_sameImage_samePod_sameInstant: { image: 'docker.io/library/nginx', pod: 'a', atMs: 0 },
  exec3_otherImage_sameRegistry_samePod_sameInstant: { image: 'docker.io/library/redis', pod: 'a', atMs: 0 },
  exec4_sameImage_otherPod_sameInstant: { image: 'docker.io/library/nginx', pod: 'b', atMs: 0 },
  'exec5_otherImage_samePod_after1.1s': { image: 'docker.io/library/redis', pod: 'a', atMs: 1100 },
};

export const suite: ConformanceSuite<Settings, Executed> = {
  cases(document) {
    const { cases } = document as { cases: readonly (Settings & Record<string, unknown>)[] };
    return cases.map((one) => {
      const names = Object.keys(one).filter((name) => name.startsWith('exec'));
      if (names.join() !== Object.keys(CALLS).join())
        throw new Error(`other calls than known: ${names.join()}`);
      return {
        name: `${one.cacheKeyType} for ${one.cacheDuration}`,
        input: one,
        expected: { runs: names.map((name) => one[name] === true), withOurs: names.map(() => true) },
      };
    });
  },
  answer(settings) {
    const calls = Object.values(CALLS);
    const ours = kubeletTakes(EMPTY_RESPONSE);
    if (ours === undefined) throw new Error('our own response is refused');
    return {
      runs: executions(calls, { cacheKeyType: settings.cacheKeyType, cacheDurationMs: keptFor(settings) }),
      withOurs: executions(calls, {
        cacheKeyType: ours.cacheKeyType,
        cacheDurationMs: keptFor({ ...settings, cacheDuration: ours.cacheDuration ?? 'absent' }),
      }),
    };
  },
  mutation: {
    file: 'runtime/credential-provider/plugin/request.ts',
    replace: "cacheDuration: '0s'",
    by: "cacheDuration: '1m'",
  },
};

function keptFor({ cacheDuration, defaultCacheDuration }: Settings): number {
  const duration = parseGoDuration(cacheDuration === 'absent' ? defaultCacheDuration : cacheDuration);
  if (duration === undefined) throw new Error(`no duration: ${cacheDuration}`);
  return duration / 1e6;
}
