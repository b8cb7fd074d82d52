//! Parses SQL into syntax trees in a JavaScript interpreter, with the parser from `ts/sql` that
//! `npm run generate` bundles.

use rquickjs::{CatchResultExt, Context, Function, Runtime};

use crate::database::Refusal;

const SOURCE: &str = include_str!("parser.generated.js");

/// Provides the `TextDecoder` of browsers and Node.js that the parser needs; it rejects invalid
/// UTF-8.
const DECODER: &str = "
    globalThis.TextDecoder = class {
      decode(bytes) {
        const hex = (byte) => '%' + byte.toString(16).padStart(2, '0');
        return decodeURIComponent(Array.from(bytes, hex).join(''));
      }
    };";

/// Returns the syntax tree as JSON after `=`, or the error with its position after `!`.
const READ: &str = "
    function read(text) {
      try {
        const { tree, session } = sql.readStatement(text);
        return session === null
          ? '=' + JSON.stringify(tree)
          : '!a statement of the session: test it in test/pgwire';
      } catch (error) {
        return `!${error.start}: ${error.message}`;
      }
    }";

struct Parser {
    context: Context,
}

impl Parser {
    fn new() -> Result<Self, String> {
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        let context = Context::full(&runtime).map_err(|error| error.to_string())?;
        context.with(|js| {
            let load = |script| js.eval::<(), _>(script);
            let loaded = [DECODER, SOURCE, READ].into_iter().try_for_each(load);
            loaded.catch(&js).map_err(|error| error.to_string())
        })?;
        Ok(Self { context })
    }

    fn read(&self, text: &str) -> Result<String, String> {
        self.context.with(|js| {
            let read = js.globals().get::<_, Function<'_>>("read");
            let answer = read.and_then(|read| read.call((text,)));
            answer.catch(&js).map_err(|error| error.to_string())
        })
    }
}

thread_local! {
    static PARSER: Result<Parser, String> = Parser::new();
}

/// Returns the syntax tree of a statement as JSON.
pub(crate) fn parse(text: &str) -> Result<String, Refusal> {
    let answer = PARSER.with(|parser| match parser {
        Ok(parser) => parser.read(text),
        Err(error) => Err(error.clone()),
    });
    let answer = answer.map_err(|error| Refusal(format!("the parser fails: {error}")))?;
    match answer.strip_prefix('=') {
        Some(tree) => Ok(tree.to_owned()),
        None => Err(Refusal(answer[1..].to_owned())),
    }
}
