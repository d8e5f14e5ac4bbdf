/** Schemas are otherwise compiled to code at run time, which the policy of the page forbids. Imported before any schema is made. */
import { config } from 'zod';

config({ jitless: true });
