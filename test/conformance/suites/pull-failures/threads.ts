import { pullFailures } from './read.ts';

export const suite: ReturnType<typeof pullFailures> = pullFailures({
  replace: 'causeIn(words)',
  by: 'causeIn(image)',
});
