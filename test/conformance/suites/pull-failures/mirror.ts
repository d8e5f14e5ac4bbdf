import { pullFailures } from './read.ts';

export const suite: ReturnType<typeof pullFailures> = pullFailures({
  replace: "if (cause === 'not-found') return 2;",
  by: "if (cause === 'not-found') return 0;",
});
