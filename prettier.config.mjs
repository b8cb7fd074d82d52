/** The project's line length; all other style options have Prettier's defaults. */
export default {
  printWidth: 100,
  singleQuote: true,
};
