// Finds unreachable modules, and exports that no other module imports, in all TypeScript code. It
// reads only imports and exports (no types), so it takes just a second. `tidy` reports the
// findings.
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

import ts from 'typescript';

/**
 * Entry points that no module imports. Other programs are found because a script or a document
 * names them.
 */
const ENTRIES = /^(ts\/(index|cli)\.ts|ts\/console\/src\/(main\.tsx|dom\.ts))$/;
const TEST = /^(test|ts\/console\/test)\//;

/**
 * @param {string} root
 * @param {string[]} files all files in the repository
 * @returns exports and modules that are unused, or used only by their own tests
 */
export function deadCode(root, files) {
  const modules = new Map();
  for (const file of files) {
    if (/^(ts|test|scripts)\/.*(?<!\.d)\.(tsx?|mjs)$/.test(file) && existsSync(join(root, file))) {
      modules.set(file, readModule(root, file));
    }
  }
  const used = new Map();
  for (const [file, module] of modules) {
    const entered = ENTRIES.test(file) ? module.handedOn : [];
    const uses = [...module.uses, ...entered.map(({ target, from }) => ({ target, name: from }))];
    for (const { target, name } of uses) {
      use(modules, used, file, resolve(modules, file, target), name);
    }
  }
  const isNamed = namesOfPrograms(root, files);
  const found = { exports: [], modules: [] };
  for (const [file, module] of modules) {
    if (ENTRIES.test(file) || /\.generated\.|\.mjs$/.test(file)) {
      continue;
    }
    if (!/\.test\.ts$/.test(file) && !used.has(file) && !isNamed(file)) {
      found.modules.push(file);
    }
    for (const [name, line] of module.exports) {
      const users = ['*', name].flatMap((each) => used.get(file)?.get(each) ?? []);
      // A name that is also used in its own module may be exported only for a unit test.
      const isTested = users.length > 0 && (TEST.test(file) || module.mentions.get(name) > 1);
      if (users.every((user) => TEST.test(user)) && !isTested && !isNamed(file, name)) {
        found.exports.push(`${file}:${line} ${name}`);
      }
    }
  }
  return found;
}

/** Records a use, following it through re-exports. */
function use(modules, used, user, file, name) {
  if (file === undefined) {
    return;
  }
  const names = used.get(file) ?? new Map();
  used.set(file, names);
  const users = names.get(name) ?? [];
  if (users.includes(user)) {
    return;
  }
  names.set(name, [...users, user]);
  const { handedOn } = modules.get(file);
  for (const { target, from, as } of handedOn) {
    if (name === '*' || as === '*' || as === name) {
      const wanted = as === '*' ? name : from;
      use(modules, used, user, resolve(modules, file, target), wanted);
    }
  }
}

function resolve(modules, file, target) {
  const path = posix.normalize(posix.join(posix.dirname(file), target));
  const stem = path.replace(/^build\//, '').replace(/\.[jt]sx?$/, '');
  return [`${stem}.ts`, `${stem}.tsx`, `${path}.ts`].find((name) => modules.has(name));
}

function readModule(root, file) {
  const text = readFileSync(join(root, file), 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const module = { exports: new Map(), uses: [], handedOn: [], mentions: new Map() };
  const spaces = new Map();
  for (const statement of source.statements) {
    if (ts.isImportDeclaration(statement)) {
      readImport(statement, module.uses, spaces);
    } else if (ts.isExportDeclaration(statement)) {
      readExport(source, statement, module);
    } else if (statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) {
      const line = source.getLineAndCharacterOfPosition(statement.getStart()).line + 1;
      namesOf(statement).forEach((name) => module.exports.set(name, line));
    }
  }
  readExpressions(source, module, spaces);
  return module;
}

function readImport({ moduleSpecifier, importClause }, uses, spaces) {
  const target = moduleSpecifier.text;
  if (!target.startsWith('.')) {
    return;
  }
  uses.push({ target, name: '' });
  if (importClause?.name !== undefined) {
    uses.push({ target, name: 'default' });
  }
  const bindings = importClause?.namedBindings;
  if (bindings !== undefined && ts.isNamespaceImport(bindings)) {
    spaces.set(bindings.name.text, target);
  } else {
    bindings?.elements.forEach(({ propertyName, name }) => {
      uses.push({ target, name: (propertyName ?? name).text });
    });
  }
}

function readExport(source, { moduleSpecifier, exportClause, pos }, module) {
  const target = moduleSpecifier?.text;
  const line = source.getLineAndCharacterOfPosition(pos).line + 1;
  if (exportClause === undefined || !ts.isNamedExports(exportClause)) {
    module.handedOn.push({ target, from: '*', as: '*' });
    return;
  }
  for (const { propertyName, name } of exportClause.elements) {
    module.exports.set(name.text, line);
    if (target?.startsWith('.') === true) {
      module.handedOn.push({ target, from: (propertyName ?? name).text, as: name.text });
    }
  }
}

function namesOf(statement) {
  if (statement.modifiers.some(({ kind }) => kind === ts.SyntaxKind.DefaultKeyword)) {
    return ['default'];
  }
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.flatMap(({ name }) =>
      ts.isIdentifier(name) ? [name.text] : name.elements.map((element) => element.name.text),
    );
  }
  return [statement.name.text];
}

/**
 * Collects `space.name` from namespace imports, and `import('…')` in types and at run time. Also
 * collects modules that are started as programs: `new URL('…', import.meta.url)`.
 */
function readExpressions(source, { uses, mentions }, spaces) {
  const visit = (node) => {
    if (ts.isIdentifier(node) && !ts.isExportSpecifier(node.parent)) {
      mentions.set(node.text, (mentions.get(node.text) ?? 0) + 1);
    }
    const left = ts.isPropertyAccessExpression(node) ? node.expression : node.left;
    const right = ts.isPropertyAccessExpression(node) ? node.name : node.right;
    if ((ts.isPropertyAccessExpression(node) || ts.isQualifiedName(node)) && left !== undefined) {
      const target = spaces.get(left.text);
      if (target !== undefined) {
        uses.push({ target, name: right.text });
      }
    } else if (isDynamicImport(node) || isAddress(node)) {
      uses.push({ target: node.arguments[0].text, name: '*' });
    } else if (ts.isImportTypeNode(node)) {
      const name = node.qualifier?.text ?? '*';
      uses.push({ target: node.argument.literal.text, name });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
}

function isDynamicImport(node) {
  return (
    ts.isCallExpression(node) &&
    node.expression.kind === ts.SyntaxKind.ImportKeyword &&
    ts.isStringLiteralLike(node.arguments[0])
  );
}

function isAddress(node) {
  return (
    ts.isNewExpression(node) &&
    node.expression.text === 'URL' &&
    node.arguments?.length === 2 &&
    ts.isStringLiteralLike(node.arguments[0]) &&
    node.arguments[0].text.endsWith('.js')
  );
}

/**
 * Returns the programs that scripts, packages or documents run by path, and the names that scripts
 * load.
 */
function namesOfPrograms(root, files) {
  const read = (pattern) =>
    files
      .filter((file) => pattern.test(file) && existsSync(join(root, file)))
      .map((file) => readFileSync(join(root, file), 'utf8'))
      .join('\n');
  const scripts = read(/^scripts\//);
  const others = read(/^(package\.json|docs\/.*\.md|\.github\/.*\.yml|ava.*\.mjs)$/);
  return (file, name) => {
    const [, folder, module] = /^(?:ts\/)?(?:(.*)\/)?([^/]+)\.ts$/.exec(file) ?? [];
    const paths = [`build/${file.replace(/\.ts$/, '.js')}`, `'${folder}', '${module}.js'`];
    const isIn = (text) => paths.some((path) => text.includes(path));
    return name === undefined ? isIn(scripts + others) : isIn(scripts) && scripts.includes(name);
  };
}
