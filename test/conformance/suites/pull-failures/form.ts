import { pullFailures } from './read.ts';

export const suite: ReturnType<typeof pullFailures> = pullFailures({
  replace: "'kubelet-throttled', /pull QPS",
  by: "'timeout', /pull QPS",
});
