/** Line length of the whole project; the rest is Prettier's own taste. */
export default {
  printWidth: 100,
  singleQuote: true,
};
