import { pullFailures } from './read.ts';

export const suite: ReturnType<typeof pullFailures> = pullFailures({
  replace: 'no basic auth credentials|',
  by: '',
});
