/** Program version. A test keeps it equal to `package.json`. */
export const VERSION = '0.1.0';

/** Default image: example.com is reserved, so that a missing image setting fails visibly. */
export const DEFAULT_IMAGE: string = `registry.example.com/pullwright/pullwright:${VERSION}`;
