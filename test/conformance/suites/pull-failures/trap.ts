import { pullFailures } from './read.ts';

export const suite: ReturnType<typeof pullFailures> = pullFailures({
  replace: "replace(REFERENCE, 'NAME')",
  by: "replace(REFERENCE, '$&')",
});
