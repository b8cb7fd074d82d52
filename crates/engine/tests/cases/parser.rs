//! Parses SQL into syntax trees in a JavaScript interpreter. It runs the parser of `ts/sql` from
//! the bundle that `npm run generate` writes.

use rquickjs::{CatchResultExt, Context, Function, Runtime};

use crate::database::Refusal;

const SOURCE: &str = include_str!("parser.generated.js");

/// Provides the `TextDecoder` API that the parser expects from browsers and Node.js. It rejects
/// invalid UTF-8.
const DECODER: &str = "
    globalThis.TextDecoder = class {
      decode(bytes) {
        const hex = (byte) => '%' + byte.toString(16).padStart(2, '0');
        return decodeURIComponent(Array.from(bytes, hex).join(''));
      }
    };";

/// Returns either `=` followed by the syntax tree as JSON, or `!` followed by the error and its
/// position.
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

/// Returns a statement's syntax tree as JSON.
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
