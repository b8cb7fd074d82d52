//! Output column names: the canonical text of an expression, with a number appended to duplicates.

use std::fmt::Write as _;

use hashbrown::{HashMap, HashSet};
use tidemark_ast::{
    BinaryOperator, CallNode, IndexSelector, LogicalOperator, Node, NodeId, Tree, UnaryOperator,
};
use tidemark_types::identifier;

/// Maximum length of a generated name, in characters.
const MAX_GENERATED_CHARS: usize = 64;

/// Precedence of an expression's outermost operator; a higher value binds more tightly.
type Strength = u8;

const ATOM: Strength = 20;

/// The name of a select item without an alias.
pub(crate) fn generated(tree: &Tree, id: NodeId) -> String {
    match tree.get(id) {
        Some(Node::Column { path }) => {
            return path.last().map(|name| name.text.clone()).unwrap_or_default();
        }
        // `ARRAY(SELECT …)`.
        Some(Node::Call(call)) if call.name.text == "array" => return "array".to_owned(),
        Some(Node::Call(call)) if call.arguments.is_empty() || is_of_catalog(call) => {
            if let Some(name) = catalog_function(&call.name.text) {
                return name;
            }
        }
        _ => {}
    }
    let mut printer = Printer { tree, text: String::new() };
    printer.print(id, 0);
    let text = printer.text;
    match text.char_indices().nth(MAX_GENERATED_CHARS) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}

/// Whether the function belongs to the `PostgreSQL` catalog, judging by its name.
fn is_of_catalog(call: &CallNode) -> bool {
    let name = call.name.text.as_bytes();
    name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"pg_"))
}

/// Function that returns an array of strings.
pub(crate) const TEXTS_OF_TEXT: &str = "string_to_array";

/// The unqualified name of a function that only `PostgreSQL` clients call. These clients look up
/// the result column by this name (knex and `TypeORM` for `version()`, Rails for `pg_get_expr(…)`).
pub(crate) fn catalog_function(name: &str) -> Option<String> {
    let folded = identifier::fold(name);
    let bare = folded.strip_prefix("pg_catalog.");
    let plain = bare.unwrap_or(&folded);
    let is_known = bare.is_some()
        || plain.starts_with("pg_")
        || plain.starts_with("has_") && plain.ends_with("_privilege")
        || matches!(
            plain,
            "version"
                | "current_catalog"
                | "current_database"
                | "current_schema"
                | "current_schemas"
                | "current_setting"
                | "format_type"
                | "obj_description"
                | "col_description"
                | TEXTS_OF_TEXT
        );
    is_known.then(|| plain.to_owned())
}

/// An expression's canonical text, unabbreviated.
pub(crate) fn canonical(tree: &Tree, id: NodeId) -> String {
    let mut printer = Printer { tree, text: String::new() };
    printer.print(id, 0);
    printer.text
}

/// Names in use in a select list, compared without regard to case.
#[derive(Debug, Default)]
pub(crate) struct NameSet {
    used: HashSet<String>,
    /// For each name, the next number to try.
    next: HashMap<String, u32>,
}

impl NameSet {
    /// Reserves an explicit alias; returns false if it is already in use.
    pub(crate) fn take(&mut self, name: &str) -> bool {
        self.used.insert(identifier::fold(name))
    }

    /// Reserves a generated or plain name, with a number appended if the name is in use: `a`,
    /// `a_2`, `a_3`.
    pub(crate) fn number(&mut self, name: &str) -> String {
        self.first_free(name, 2, "_")
    }

    /// Reserves the name of a column that `*` adds, with a number appended if the name is in use:
    /// `a`, `a1`, `a2`.
    pub(crate) fn number_star(&mut self, name: &str) -> String {
        self.first_free(name, 1, "")
    }

    fn first_free(&mut self, name: &str, from: u32, separator: &str) -> String {
        if self.take(name) {
            return name.to_owned();
        }
        let stem = format!("{name}{separator}");
        let mut number = self.next.get(&stem).copied().unwrap_or(from);
        loop {
            let candidate = format!("{stem}{number}");
            number += 1;
            if self.take(&candidate) {
                self.next.insert(stem, number);
                return candidate;
            }
        }
    }
}

struct Printer<'a> {
    tree: &'a Tree,
    text: String,
}

impl Printer<'_> {
    /// Prints a node, in parentheses if it binds less tightly than `context`.
    fn print(&mut self, id: NodeId, context: Strength) {
        let Some(node) = self.tree.get(id) else { return };
        let parenthesised = strength(node) < context;
        if parenthesised {
            self.text.push('(');
        }
        self.print_node(node);
        if parenthesised {
            self.text.push(')');
        }
    }

    fn print_node(&mut self, node: &Node) {
        match node {
            Node::Null => self.text.push_str("null"),
            Node::Boolean { value } => self.text.push_str(if *value { "true" } else { "false" }),
            Node::Integer { text }
            | Node::Float { text }
            | Node::Decimal { text }
            | Node::Long256 { text }
            | Node::Geohash { text }
            | Node::Duration { text } => self.text.push_str(text),
            Node::String { value } => self.quote(value),
            Node::TypedString { type_name, value } => {
                self.quote(value);
                self.text.push_str("::");
                self.text.push_str(&type_name.name);
            }
            Node::Column { path } => {
                let words: Vec<&str> = path.iter().map(|name| name.text.as_str()).collect();
                self.text.push_str(&words.join("."));
            }
            Node::Star { qualifier, .. } => match qualifier {
                Some(name) => {
                    self.text.push_str(&name.text);
                    self.text.push_str(".*");
                }
                None => self.text.push('*'),
            },
            Node::Parameter { index } => self.write(format_args!("${index}")),
            Node::NamedParameter { name } => self.write(format_args!(":{}", name.text)),
            Node::Variable { name } => self.write(format_args!("@{}", name.text)),
            _ => self.print_operation(node),
        }
    }

    fn print_operation(&mut self, node: &Node) {
        match node {
            Node::Unary { operator, operand } => {
                self.text.push_str(match operator {
                    UnaryOperator::Minus => "-",
                    UnaryOperator::Plus => "+",
                    UnaryOperator::BitNot => "~",
                    UnaryOperator::Not => "not",
                });
                self.list(&[*operand]);
            }
            Node::Binary { operator, left, right, .. } => {
                let own = strength(node);
                self.print(*left, own);
                self.write(format_args!(" {} ", operator_text(*operator)));
                self.print(*right, own + 1);
            }
            Node::Logical { operator, operands } => {
                let word = match operator {
                    LogicalOperator::And => " and ",
                    LogicalOperator::Or => " or ",
                };
                let own = strength(node);
                for (index, operand) in operands.iter().enumerate() {
                    if index > 0 {
                        self.text.push_str(word);
                    }
                    self.print(*operand, own + 1);
                }
            }
            Node::Concat { operands, .. } => {
                self.text.push_str("concat");
                self.list(operands);
            }
            Node::IsNull { operand, negated } => {
                self.print(*operand, 7);
                self.text.push_str(if *negated { " != NULL" } else { " = NULL" });
            }
            Node::Between { operand, low, high, negated, .. } => {
                self.membership(*operand, " between ", &[*low, *high], *negated);
            }
            Node::InList { operand, items, bare, negated, .. } => {
                if *bare && items.len() == 1 {
                    self.negation(*negated, |printer| {
                        printer.print(*operand, 8);
                        printer.text.push_str(" in ");
                        printer.print(items[0], 0);
                    });
                } else {
                    self.membership(*operand, " in ", items, *negated);
                }
            }
            Node::Within { operand, items, .. } => {
                self.membership(*operand, " within ", items, false);
            }
            Node::InQuery { operand, negated, .. } => {
                self.membership(*operand, " in ", &[], *negated);
            }
            _ => self.print_call_like(node),
        }
    }

    fn print_call_like(&mut self, node: &Node) {
        match node {
            Node::Cast { operand, type_name, double_colon } => {
                self.print(*operand, 18);
                self.text.push_str("::");
                // `::float` means DOUBLE and is printed as such.
                let floats = *double_colon && type_name.name.eq_ignore_ascii_case("float");
                self.text.push_str(if floats { "DOUBLE" } else { &type_name.name });
                if !type_name.arguments.is_empty() {
                    self.write(format_args!("({})", type_name.arguments.join(",")));
                }
                self.text.push_str(&"[]".repeat(type_name.dimensions as usize));
            }
            Node::Case { operand, branches, otherwise } => {
                let switched = operand.or_else(|| self.common_operand(branches));
                match switched {
                    Some(on) => self.print_switch(on, operand.is_some(), branches, *otherwise),
                    None => self.print_case(branches, *otherwise),
                }
            }
            Node::Call(call) => self.print_call(call),
            Node::Array { items } => {
                self.text.push_str("ARRAY[");
                self.join(items);
                self.text.push(']');
            }
            Node::Index { operand, selectors } => {
                self.print(*operand, 18);
                self.print_selectors(selectors);
            }
            _ => self.text.push_str("column"),
        }
    }

    fn print_selectors(&mut self, selectors: &[IndexSelector]) {
        self.text.push('[');
        for (position, selector) in selectors.iter().enumerate() {
            if position > 0 {
                self.text.push(',');
            }
            match selector {
                IndexSelector::Item { index } => self.print(*index, 0),
                IndexSelector::Slice { low, high } => {
                    self.print(*low, 0);
                    self.text.push(':');
                    if let Some(high) = high {
                        self.print(*high, 0);
                    }
                }
            }
        }
        self.text.push(']');
    }

    fn print_call(&mut self, call: &CallNode) {
        let distinct_count = call.distinct && call.name.text.eq_ignore_ascii_case("count");
        self.text.push_str(if distinct_count { "count_distinct" } else { &call.name.text });
        let star = matches!(call.arguments.as_slice(), [only]
            if matches!(self.tree.get(*only), Some(Node::Star { qualifier: None, .. })));
        self.list(if star { &[] } else { &call.arguments });
    }

    fn print_switch(
        &mut self,
        on: NodeId,
        has_operand: bool,
        branches: &[tidemark_ast::CaseBranch],
        otherwise: Option<NodeId>,
    ) {
        let mut items = vec![on];
        for branch in branches {
            let value = match self.tree.get(branch.when) {
                Some(Node::Binary { right, .. }) if !has_operand => *right,
                _ => branch.when,
            };
            items.extend([value, branch.then]);
        }
        items.extend(otherwise);
        self.text.push_str("switch");
        self.list(&items);
    }

    fn print_case(&mut self, branches: &[tidemark_ast::CaseBranch], otherwise: Option<NodeId>) {
        self.text.push_str("case");
        for branch in branches {
            self.text.push_str(" when ");
            self.print(branch.when, 0);
            self.text.push_str(" then ");
            self.print(branch.then, 0);
        }
        if let Some(otherwise) = otherwise {
            self.text.push_str(" else ");
            self.print(otherwise, 0);
        }
        self.text.push_str(" end");
    }

    /// If every branch compares the same column with a constant, returns that column.
    fn common_operand(&self, branches: &[tidemark_ast::CaseBranch]) -> Option<NodeId> {
        let mut common: Option<(NodeId, String)> = None;
        for branch in branches {
            let Node::Binary { operator: BinaryOperator::Equal, left, right, .. } =
                self.tree.get(branch.when)?
            else {
                return None;
            };
            let is_column = matches!(self.tree.get(*left), Some(Node::Column { .. }));
            if !is_column || !is_literal(self.tree.get(*right)?) {
                return None;
            }
            let text = canonical(self.tree, *left);
            match &common {
                Some((_, seen)) if *seen != text => return None,
                _ => common = Some((*left, text)),
            }
        }
        common.map(|(id, _)| id)
    }

    fn membership(&mut self, operand: NodeId, word: &str, items: &[NodeId], negated: bool) {
        self.negation(negated, |printer| {
            printer.print(operand, 8);
            printer.text.push_str(word);
            printer.list(items);
        });
    }

    fn negation(&mut self, negated: bool, print: impl FnOnce(&mut Self)) {
        if negated {
            self.text.push_str("not(");
        }
        print(self);
        if negated {
            self.text.push(')');
        }
    }

    fn list(&mut self, items: &[NodeId]) {
        self.text.push('(');
        self.join(items);
        self.text.push(')');
    }

    fn join(&mut self, items: &[NodeId]) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.text.push_str(", ");
            }
            self.print(*item, 0);
        }
    }

    /// Writing to a string cannot fail.
    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        let _ = self.text.write_fmt(arguments);
    }

    fn quote(&mut self, value: &str) {
        self.text.push('\'');
        self.text.push_str(value);
        self.text.push('\'');
    }
}

fn is_literal(node: &Node) -> bool {
    matches!(
        node,
        Node::Null
            | Node::Boolean { .. }
            | Node::Integer { .. }
            | Node::Float { .. }
            | Node::String { .. }
    )
}

fn strength(node: &Node) -> Strength {
    match node {
        Node::Logical { operator: LogicalOperator::Or, .. } => 2,
        Node::Logical { operator: LogicalOperator::And, .. } => 3,
        Node::IsNull { .. } => 6,
        Node::Binary { operator, .. } => match operator {
            BinaryOperator::Equal
            | BinaryOperator::NotEqual
            | BinaryOperator::Matches
            | BinaryOperator::NotMatches
            | BinaryOperator::Like
            | BinaryOperator::NotLike
            | BinaryOperator::ILike
            | BinaryOperator::NotILike => 6,
            BinaryOperator::Less
            | BinaryOperator::LessOrEqual
            | BinaryOperator::Greater
            | BinaryOperator::GreaterOrEqual => 7,
            BinaryOperator::BitOr => 9,
            BinaryOperator::BitXor => 10,
            BinaryOperator::BitAnd => 11,
            BinaryOperator::ContainedBy
            | BinaryOperator::ContainedByOrEqual
            | BinaryOperator::Contains
            | BinaryOperator::ContainsOrEqual => 13,
            BinaryOperator::Add | BinaryOperator::Subtract => 14,
            BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Modulo => 15,
        },
        Node::Between { .. } | Node::InList { .. } | Node::InQuery { .. } | Node::Within { .. } => {
            8
        }
        _ => ATOM,
    }
}

/// The operator as printed in messages and names.
pub(crate) fn operator_text(operator: BinaryOperator) -> &'static str {
    match operator {
        BinaryOperator::Add => "+",
        BinaryOperator::Subtract => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::BitAnd => "&",
        BinaryOperator::BitOr => "|",
        BinaryOperator::BitXor => "^",
        BinaryOperator::Equal => "=",
        BinaryOperator::NotEqual => "!=",
        BinaryOperator::Less => "<",
        BinaryOperator::LessOrEqual => "<=",
        BinaryOperator::Greater => ">",
        BinaryOperator::GreaterOrEqual => ">=",
        BinaryOperator::Matches => "~",
        BinaryOperator::NotMatches => "!~",
        BinaryOperator::Like => "like",
        BinaryOperator::NotLike => "not like",
        BinaryOperator::ILike => "ilike",
        BinaryOperator::NotILike => "not ilike",
        BinaryOperator::ContainedBy => "<<",
        BinaryOperator::ContainedByOrEqual => "<<=",
        BinaryOperator::Contains => ">>",
        BinaryOperator::ContainsOrEqual => ">>=",
    }
}

/// Formats a name in SQL syntax: quoted unless it is a plain word.
pub(crate) fn quoted(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if plain { name.to_owned() } else { format!("\"{name}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_column_names_are_numbered_case_insensitively() {
        let mut names = NameSet::default();
        assert_eq!(names.number("sum(a)"), "sum(a)");
        assert_eq!(names.number("SUM(a)"), "SUM(a)_2");
        assert_eq!(names.number_star("ts"), "ts");
        assert_eq!(names.number_star("ts"), "ts1");
        assert!(!names.take("TS"));
    }
}
