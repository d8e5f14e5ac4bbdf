/** Node's own function, as a package of its makers. */
declare module '@pkgjs/parseargs' {
  export { parseArgs } from 'node:util';
}
