import { type PullFailures, pullFailures } from './read.ts';

const WORDS = { replace: 'causeIn(words)', by: 'causeIn(image)' };

export const suites: Readonly<Record<string, PullFailures>> = {
  form: pullFailures({ replace: "'kubelet-throttled': /pull QPS", by: "'timeout': /pull QPS" }),
  mirror: pullFailures({
    replace: "if (cause === 'not-found') return 2;",
    by: "if (cause === 'not-found') return 0;",
  }),
  more: pullFailures({ replace: 'rank + 10', by: 'rank' }),
  'not-a-pull': pullFailures({
    replace: "return message.includes('checking signature of')",
    by: "return message.includes('')",
  }),
  real: pullFailures({ replace: 'no basic auth credentials|', by: '' }),
  threads: pullFailures(WORDS),
  trap: pullFailures(WORDS),
};
