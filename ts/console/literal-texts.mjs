// ESLint rule for the console's sources: user-visible text belongs in the catalogue of texts
// instead of literals. The rule rejects letters in JSX and in attributes that are shown or read
// aloud. It also rejects every other literal that is a capitalized word or consists of several
// words.

/** Element attributes and component properties whose values are shown. */
const SHOWN = new Set(
  [
    'act alt aria-description aria-label aria-roledescription aria-valuetext caption fallback hint',
    'keep label object placeholder text title unread',
  ].flatMap((line) => line.split(' ')),
);
/** Attributes that contain lists of names. */
const NAME_LISTS = new Set(['class', 'rel']);
/** Elements whose content is code or the name of a key. */
const CODE_ELEMENTS = new Set(['code', 'kbd', 'pre']);
/** Methods whose arguments are compared, or identify an object in the browser. */
const NAMING_CALLS =
  /^(?:(?:add|remove)EventListener|setAttribute|querySelector(?:All)?|closest|get|includes)$/;
/** Properties whose values are never shown, in object literals and in assignments. */
const NAMING_PROPERTIES = /^keys?$/;
const ASSIGNED_NAMES = /^(?:name|rel)$/;

const LETTERS = /\p{L}{2}/u;
const CAPITALIZED = /^\W*\p{Lu}\p{Ll}+(?:\W|$)/u;
const SEVERAL_WORDS = /(?:^|\W)\p{L}+[,;:.)]?\s+\(?\p{L}{2,}(?:\W|$)/u;
/** Words that are the same in every language, and names of keys. */
const NAMES = new Set(
  [
    'Aa Alt Arrow Arrows Backspace Basic Bearer Ctrl Delete End Enter Escape Go Home Java Markdown',
    'Mod Node Parquet PgDn PgUp Python Shift Tab Tidemark',
  ].flatMap((line) => line.split(' ')),
);
const KEYWORDS =
  'ASSUME CANCEL COLUMNS CREATE DECLARE DROP EXPLAIN FROM GRANT INSERT ORDER PERIOD RECOVER ' +
  'REFRESH RENAME REVOKE SELECT SHOW TIMESTAMP WHERE WITH';
/** Matches SQL: text that begins with an uppercase keyword or ends with an alias. */
const SQL = new RegExp(`^\\W*(?:${KEYWORDS.replaceAll(' ', '|')})\\b|\\W AS \\w+$`);
/** Matches markup, and names and values of style sheets. */
const STYLE = /^\s*<|var\(--|calc\(|\dpx\b|\dfr\b|^\([a-z-]+: |^[a-z]+(?:-[a-z]+)+ /;

/** @type {import('eslint').Rule.RuleModule} */
export const literalTexts = {
  meta: {
    type: 'problem',
    schema: [],
    messages: { literal: 'put this text into ts/console/src/texts.ts' },
  },
  create(context) {
    const check = (node, text, isPlain) => {
      const place = placeOf(node);
      const isShown = place === 'shown' && LETTERS.test(text) && !isNames(text);
      if (isShown || (place === 'code' && isPlain(text))) {
        context.report({ node, messageId: 'literal' });
      }
    };
    return {
      JSXText(node) {
        if (LETTERS.test(node.value) && !isInCodeElement(node)) {
          context.report({ node, messageId: 'literal' });
        }
      },
      Literal(node) {
        if (typeof node.value === 'string') {
          check(node, node.value, isText);
        }
      },
      TemplateLiteral(node) {
        check(node, node.quasis.map(({ value }) => value.cooked).join('\u0000'), isText);
      },
    };
  },
};

function isText(text) {
  return (
    (CAPITALIZED.test(text) || SEVERAL_WORDS.test(text)) &&
    !SQL.test(text) &&
    !STYLE.test(text) &&
    !isNames(text)
  );
}

/** True if a text consists only of names of keys or products. */
function isNames(text) {
  return text
    .split(/[^\p{L}\d]+/u)
    .every((word) => /^(?:\p{Lu}*|\p{Lu}?\d+|\p{Ll})$/u.test(word) || NAMES.has(word));
}

/**
 * Returns where a literal is used: shown to the user, in other code, or as a name that is never
 * shown.
 */
function placeOf(node) {
  const { parent } = node;
  switch (parent.type) {
    case 'ConditionalExpression':
      return parent.test === node ? 'name' : placeOf(parent);
    case 'LogicalExpression':
    case 'TemplateLiteral':
      return placeOf(parent);
    case 'BinaryExpression':
      return parent.operator === '+' ? placeOf(parent) : 'name';
    case 'JSXExpressionContainer':
      return parent.parent.type === 'JSXAttribute' ? placeOf(parent) : childPlace(parent);
    case 'JSXAttribute':
      return attributePlace(parent.name.name);
    case 'AssignmentExpression':
      return ASSIGNED_NAMES.test(parent.left.property?.name ?? '') ? 'name' : 'code';
    case 'Property':
      return parent.key === node || NAMING_PROPERTIES.test(parent.key.name) ? 'name' : 'code';
    case 'CallExpression':
      return NAMING_CALLS.test(parent.callee.property?.name ?? '') ? 'name' : 'code';
    case 'ExportAllDeclaration':
    case 'ExportNamedDeclaration':
    case 'ImportDeclaration':
    case 'ImportExpression':
    case 'MemberExpression':
    case 'SwitchCase':
    case 'TaggedTemplateExpression':
    case 'TSLiteralType':
      return 'name';
    default:
      return 'code';
  }
}

function attributePlace(name) {
  return SHOWN.has(name) ? 'shown' : NAME_LISTS.has(name) ? 'name' : 'code';
}

function childPlace(node) {
  return isInCodeElement(node) ? 'name' : 'shown';
}

function isInCodeElement({ parent }) {
  return parent.type === 'JSXElement' && CODE_ELEMENTS.has(parent.openingElement.name.name);
}
