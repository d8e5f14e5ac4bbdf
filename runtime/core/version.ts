/** The version of this program. A test holds it equal to `package.json`. */
export const VERSION = '0.1.0';

/** What is started where nobody names an image: a registry that nobody can hold, so that it fails where it can be seen. */
export const DEFAULT_IMAGE: string = `registry.example.com/pullwright/pullwright:${VERSION}`;
