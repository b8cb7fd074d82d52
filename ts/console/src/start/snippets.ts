/** How clients of each kind write a row and read it back, with this server's own address. */

export interface Snippet {
  readonly client: string;
  readonly code: string;
}

/** `http`: the page's own origin and path; `host`: the name without a port. */
export function snippets(http: string, host: string): Snippet[] {
  const pg = `host=${host} port=8812 user=admin password=quest dbname=qdb`;
  const url = `postgresql://admin:quest@${host}:8812/qdb`;
  return [
    { client: 'curl', code: curl(http) },
    { client: 'psql', code: psql(url) },
    { client: 'Python', code: python(pg) },
    { client: 'Node', code: node(url) },
    { client: 'Go', code: go(url) },
    { client: 'Java', code: java(host) },
  ];
}

const CREATE =
  'CREATE TABLE IF NOT EXISTS readings (ts TIMESTAMP, station SYMBOL, temperature DOUBLE)' +
  ' TIMESTAMP(ts) PARTITION BY DAY';

function curl(http: string): string {
  return `# a CSV file becomes a table
cat > readings.csv <<END
ts,station,temperature
2026-01-01T00:00:00.000000Z,oslo-1,4.2
2026-01-01T00:10:00.000000Z,oslo-1,4.1
END
curl -F data=@readings.csv '${http}imp?name=readings&timestamp=ts&partitionBy=DAY'

# ask for it
curl -G '${http}exec' --data-urlencode 'query=SELECT * FROM readings'`;
}

function psql(url: string): string {
  return `psql '${url}'

${CREATE};
INSERT INTO readings VALUES (now(), 'oslo-1', 4.2);
SELECT * FROM readings;`;
}

function python(pg: string): string {
  return `# pip install "psycopg[binary]"
import psycopg

with psycopg.connect("${pg}", autocommit=True) as db:
    db.execute("""${CREATE}""")
    db.execute("INSERT INTO readings VALUES (now(), %s, %s)", ("oslo-1", 4.2))
    for row in db.execute("SELECT * FROM readings"):
        print(row)`;
}

function node(url: string): string {
  return `// npm install pg
import pg from 'pg';

const db = new pg.Client('${url}');
await db.connect();
await db.query(\`${CREATE}\`);
await db.query('INSERT INTO readings VALUES (now(), $1, $2)', ['oslo-1', 4.2]);
console.log((await db.query('SELECT * FROM readings')).rows);
await db.end();`;
}

function go(url: string): string {
  return `// go get github.com/jackc/pgx/v5
package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

func main() {
	ctx := context.Background()
	db, err := pgx.Connect(ctx, "${url}")
	if err != nil {
		panic(err)
	}
	defer db.Close(ctx)
	db.Exec(ctx, \`${CREATE}\`)
	db.Exec(ctx, "INSERT INTO readings VALUES (now(), $1, $2)", "oslo-1", 4.2)
	var count int64
	db.QueryRow(ctx, "SELECT count() FROM readings").Scan(&count)
	fmt.Println(count)
}`;
}

function java(host: string): string {
  return `// org.postgresql:postgresql
import java.sql.*;

public class Readings {
  public static void main(String[] arguments) throws SQLException {
    String url = "jdbc:postgresql://${host}:8812/qdb";
    try (Connection db = DriverManager.getConnection(url, "admin", "quest")) {
      db.createStatement().execute("${CREATE}");
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
