/** The flag for networks that are meant. */
import { isNetwork } from '../../http/addresses.ts';
import { checked, type Flag, several, text } from './flag.ts';

/** Networks that may be contacted whoever chose the name that leads there. */
export const ALLOW_ADDRESS: Flag<readonly string[] | undefined> = several(
  checked(
    text({
      value: 'CIDR',
      help: 'a network such as 10.1.0.0/16 that may be contacted, whoever chose the name that leads there',
    }),
    (value) =>
      value === undefined || isNetwork(value) ? undefined : 'an address or a network such as 10.1.0.0/16',
  ),
);
