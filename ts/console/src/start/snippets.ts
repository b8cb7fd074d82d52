/**
 * Example code for each kind of client, with this server's addresses. Each snippet writes a row and
 * reads it back. Snippets run unchanged: tests run the code exactly as the page shows it. Except
 * for the default password, passwords come from environment variables and never appear on the page.
 */
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** Connection data for the clients of this server. */
export interface ConnectionData {
  /** Origin and path of the HTTP interface, with a trailing slash. */
  readonly http: string;
  /** User name for HTTP logins; absent if HTTP requires no login. */
  readonly httpUser: string | undefined;
  /** Kind of token that users of an identity provider must send. */
  readonly token: string | undefined;
  /** Address of the PostgreSQL wire protocol; absent if only HTTP is enabled. */
  readonly endpoint: WireEndpoint | undefined;
  /** Login for the wire protocol; absent if the user cannot connect through it. */
  readonly wire: WireLogin | undefined;
}

interface WireEndpoint {
  /** Host name or address as in a URL, with IPv6 addresses in brackets. */
  readonly host: string;
  readonly port: number;
  readonly isEncrypted: boolean;
}

export interface WireLogin {
  readonly user: string;
  /** Absent if the password comes from an environment variable. */
  readonly password: string | undefined;
}

type Wire = WireEndpoint & WireLogin & Pick<ConnectionData, 'token'>;

export interface Snippet {
  readonly client: string;
  readonly code: string;
}

export function snippets(connection: ConnectionData): Snippet[] {
  const { endpoint, wire, token } = connection;
  const first = { client: 'curl', code: curl(connection) };
  if (endpoint === undefined || wire === undefined) {
    return [first];
  }
  const target = { ...endpoint, ...wire, token };
  return [
    first,
    { client: 'psql', code: psql(target) },
    { client: 'Python', code: python(target) },
    { client: 'Node', code: node(target) },
    { client: 'Go', code: go(target) },
    { client: 'Java', code: java(target) },
  ];
}

/** Template tag that marks example code, which is not translated. */
function code(strings: TemplateStringsArray, ...values: string[]): string {
  return String.raw({ raw: strings }, ...values);
}

/** Placeholder for the group that owns a new table, because external users cannot own tables. */
const OWNER = 'your_group';

function create({ token }: Wire): string {
  return (
    'CREATE TABLE IF NOT EXISTS readings (ts TIMESTAMP, station SYMBOL, temperature DOUBLE)' +
    ` TIMESTAMP(ts) PARTITION BY DAY${token === undefined ? '' : ` OWNED BY ${OWNER}`}`
  );
}

/**
 * Returns a URL for drivers that accept `postgresql://`. Apostrophes are encoded, because they
 * would end the surrounding string literal.
 */
function addressOf({ host, port, isEncrypted, user, password }: Wire): string {
  const secret = password === undefined ? '' : `:${encoded(password)}`;
  const encryption = isEncrypted ? '?sslmode=require' : '';
  return `postgresql://${encoded(user)}${secret}@${host}:${port}/qdb${encryption}`;
}

function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll("'", '%27');
}

function note(mark: string, { user, password, token }: Wire): string {
  return password === undefined ? hint(mark, user, token) : '';
}

function hint(mark: string, user: string, token: string | undefined): string {
  return token === undefined
    ? `${mark} ${fill(texts.start.passwordNote, { user })}\n`
    : `${mark} ${fill(texts.start.tokenNote, { token })}\n` +
        `${mark} ${fill(texts.start.ownerNote, { owner: OWNER })}\n`;
}

function shellWord(text: string): string {
  return text.replace(/[\\"$`]/g, '\\$&');
}

function curl({ http, httpUser: user, token }: ConnectionData): string {
  const login =
    token !== undefined
      ? code` -H "Authorization: Bearer $PGPASSWORD"`
      : user === undefined
        ? ''
        : ` -u "${shellWord(user)}:$PGPASSWORD"`;
  const owner = token === undefined ? '' : `&owner=${OWNER}`;
  return code`${user === undefined ? '' : hint('#', user, token)}# ${texts.start.importNote}
cat > readings.csv <<END
ts,station,temperature
2026-01-01T00:00:00.000000Z,oslo-1,4.2
2026-01-01T00:10:00.000000Z,oslo-1,4.1
END
curl${login} -F data=@readings.csv '${http}imp?name=readings&timestamp=ts&partitionBy=DAY${owner}'

# ${texts.start.queryNote}
curl${login} -G '${http}exec' --data-urlencode 'query=SELECT * FROM readings'`;
}

function psql(target: Wire): string {
  return code`${note('#', target)}psql '${addressOf(target)}' <<'END'
${create(target)};
INSERT INTO readings VALUES (now(), 'oslo-1', 4.2);
SELECT * FROM readings;
END`;
}

function python(target: Wire): string {
  return code`# pip install "psycopg[binary]"
${note('#', target)}import psycopg

with psycopg.connect("${addressOf(target)}", autocommit=True) as db:
    db.execute("""${create(target)}""")
    db.execute("INSERT INTO readings VALUES (now(), %s, %s)", ("oslo-1", 4.2))
    for row in db.execute("SELECT * FROM readings"):
        print(row)`;
}

function node(target: Wire): string {
  return code`// npm install pg
${note('//', target)}import pg from 'pg';

const db = new pg.Client('${addressOf(target)}');
await db.connect();
await db.query(\`${create(target)}\`);
await db.query('INSERT INTO readings VALUES (now(), $1, $2)', ['oslo-1', 4.2]);
console.log((await db.query('SELECT * FROM readings')).rows);
await db.end();`;
}

function go(target: Wire): string {
  return code`// go get github.com/jackc/pgx/v5
${note('//', target)}package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

func main() {
	ctx := context.Background()
	db, err := pgx.Connect(ctx, "${addressOf(target)}")
	check(err)
	defer db.Close(ctx)
	_, err = db.Exec(ctx, \`${create(target)}\`)
	check(err)
	_, err = db.Exec(ctx, "INSERT INTO readings VALUES (now(), $1, $2)", "oslo-1", 4.2)
	check(err)
	var rows int64
	check(db.QueryRow(ctx, "SELECT count() FROM readings").Scan(&rows))
	fmt.Println(rows, "rows")
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}`;
}

function java(target: Wire): string {
  const { host, port, isEncrypted, user, password } = target;
  const literal = (text: string): string => JSON.stringify(text);
  const secret = password === undefined ? code`System.getenv("PGPASSWORD")` : literal(password);
  const encryption = isEncrypted ? '?sslmode=require' : '';
  const url = `jdbc:postgresql://${host}:${port}/qdb${encryption}`;
  return code`// org.postgresql:postgresql
${note('//', target)}import java.sql.*;

public class Readings {
  public static void main(String[] arguments) throws SQLException {
    String url = ${literal(url)};
    try (Connection db = DriverManager.getConnection(url, ${literal(user)}, ${secret})) {
      db.createStatement().execute("${create(target)}");
      PreparedStatement row = db.prepareStatement("INSERT INTO readings VALUES (now(), ?, ?)");
      row.setString(1, "oslo-1");
      row.setDouble(2, 4.2);
      row.execute();
      ResultSet rows = db.createStatement().executeQuery("SELECT * FROM readings");
      while (rows.next()) {
        System.out.println(rows.getTimestamp(1) + " " + rows.getString(2));
      }
    }
  }
}`;
}
