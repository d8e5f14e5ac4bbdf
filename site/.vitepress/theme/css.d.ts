/** Styles are given to the bundler. */
declare module '*.css';
