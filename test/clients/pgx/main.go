// Command pgx runs Go's pgx against a server: `pgx PORT`. Prints one line of JSON.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

const slow = "SELECT sum(sqrt(x)) AS pgx FROM long_sequence(100000000000)"

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// stateOf returns the SQLSTATE of an error, with its position or context.
func stateOf(err error) string {
	var failure *pgconn.PgError
	if errors.As(err, &failure) {
		return fmt.Sprintf("%s %d%s", failure.Code, failure.Position, failure.Where)
	}
	return fmt.Sprint(err)
}

func main() {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, "postgres://admin:quest@127.0.0.1:"+os.Args[1]+"/qdb")
	must(err)
	defer conn.Close(ctx)
	out := map[string]any{}
	types(ctx, conn, out)
	texts(ctx, conn, out)
	arrays(ctx, conn, out)
	metadata(ctx, conn, out)
	cursor(ctx, conn, out)
	batch(ctx, conn, out)
	nested(ctx, conn, out)
	copies(ctx, conn, out)
	growing(ctx, conn, out)
	cancel(ctx, conn, out)
	must(json.NewEncoder(os.Stdout).Encode(out))
}

func types(ctx context.Context, conn *pgx.Conn, out map[string]any) {
	_, err := conn.Exec(ctx, `CREATE TABLE px (ts TIMESTAMP, b BOOLEAN, h SHORT, i INT, l LONG,
		f FLOAT, d DOUBLE, s SYMBOL, v VARCHAR) TIMESTAMP(ts) PARTITION BY DAY`)
	must(err)
	when := time.Date(2024, 1, 1, 0, 0, 0, 7000, time.UTC)
	_, err = conn.Exec(ctx, "INSERT INTO px VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
		when, true, int16(-7), int32(123456), int64(1)<<53+1, float32(1.5), -2.25, "sym", nil)
	must(err)
	rows, err := conn.Query(ctx, "SELECT * FROM px WHERE i = $1 AND s = $2", 123456, "sym")
	must(err)
	rows.Next()
	values, err := rows.Values()
	must(err)
	rows.Close()
	texts := []string{}
	for _, value := range values {
		texts = append(texts, fmt.Sprint(value))
	}
	out["types"] = texts
}

// texts reads the same rows in text format, with parameters inlined in the statement.
func texts(ctx context.Context, conn *pgx.Conn, out map[string]any) {
	var d float64
	var s string
	query := "SELECT d, s FROM px WHERE i = $1 AND s = $2"
	must(conn.QueryRow(ctx, query, pgx.QueryExecModeSimpleProtocol, 123456, "sym").Scan(&d, &s))
	out["simple"] = fmt.Sprint(d, " ", s)
}

func arrays(ctx context.Context, conn *pgx.Conn, out map[string]any) {
	_, err := conn.Exec(ctx, "CREATE TABLE pxa (i INT, s SYMBOL, u UUID, n DECIMAL(18,3), a DOUBLE[])")
	must(err)
	id := "11111111-2222-3333-4444-555555555555"
	_, err = conn.Exec(ctx, "INSERT INTO pxa VALUES ($1, $2, $3, $4, $5)",
		1, "a b", id, "12.5", []float64{1.5, 2})
	must(err)
	found := []string{}
	for test, value := range map[string]any{
		"i = ANY($1)":            []int32{1, 7},
		"i = ANY($1::int8[])":    []int64{7},
		"s = ANY($1)":            []string{"a b", "c"},
		"u = ANY($1)":            []string{id},
		"s = ANY($1::varchar[])": []string{},
	} {
		n := int64(0)
		must(conn.QueryRow(ctx, "SELECT count() FROM pxa WHERE "+test, value).Scan(&n))
		found = append(found, fmt.Sprint(test, " ", n))
	}
	slices.Sort(found)
	out["any"] = found
	var a []float64
	var n pgtype.Numeric
	must(conn.QueryRow(ctx, "SELECT a, n FROM pxa").Scan(&a, &n))
	value, err := n.Value()
	must(err)
	out["array"] = fmt.Sprint(a, " ", value)
}

// metadata runs the driver's own catalog queries.
func metadata(ctx context.Context, conn *pgx.Conn, out map[string]any) {
	told := []string{}
	for _, name := range []string{"_float8", "double precision[]", "uuid[]"} {
		found, err := conn.LoadType(ctx, name)
		must(err)
		told = append(told, fmt.Sprint(found.OID))
	}
	out["loaded"] = told
	described, err := conn.Prepare(ctx, "described", "SELECT i, a FROM pxa WHERE i = $1 AND u = $2")
	must(err)
	out["described"] = fmt.Sprint(described.ParamOIDs, described.Fields[0].DataTypeOID,
		described.Fields[1].DataTypeOID)
}

func cursor(ctx context.Context, conn *pgx.Conn, out map[string]any) {
	block, err := conn.Begin(ctx)
	must(err)
	_, err = block.Exec(ctx, "DECLARE steps CURSOR FOR SELECT x FROM long_sequence(100)")
	must(err)
	steps := []int{}
	for {
		rows, err := block.Query(ctx, "FETCH 30 FROM steps")
		must(err)
		numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		must(err)
		steps = append(steps, len(numbers))
		if len(numbers) < 30 {
			break
		}
	}
	must(block.Commit(ctx))
	out["cursor"] = steps
}

func batch(ctx context.Context, conn *pgx.Conn, out map[string]any) {
	batch := &pgx.Batch{}
	for n := 0; n < 500; n++ {
		batch.Queue("INSERT INTO px (ts, i) VALUES ($1, $2)", time.Unix(0, 0).UTC(), n)
	}
	must(conn.SendBatch(ctx, batch).Close())
	out["many"] = count(ctx, conn, "SELECT count() FROM px")
}

func count(ctx context.Context, conn *pgx.Conn, query string) int64 {
	var count int64
	must(conn.QueryRow(ctx, query).Scan(&count))
	return count
}

// nested checks that nested transactions are savepoints.
func nested(ctx context.Context, conn *pgx.Conn, out map[string]any) {
	outer, err := conn.Begin(ctx)
	must(err)
	inner, err := outer.Begin(ctx)
	must(err)
	_, err = inner.Exec(ctx, "SELECT * FROM nowhere")
	out["error"] = stateOf(err)
	must(inner.Rollback(ctx))
	_, err = outer.Exec(ctx, "INSERT INTO px (ts, i) VALUES (0, -1)")
	must(err)
	must(outer.Commit(ctx))
	out["nested"] = count(ctx, conn, "SELECT count() FROM px WHERE i = -1")
}

// growing adds a column to the table of a statement that the driver has cached.
func growing(ctx context.Context, conn *pgx.Conn, out map[string]any) {
	_, err := conn.Exec(ctx, "CREATE TABLE pxg AS (SELECT 1 AS a)")
	must(err)
	widths := []any{}
	for run := 0; run < 4; run++ {
		if run == 2 {
			_, err = conn.Exec(ctx, "ALTER TABLE pxg ADD COLUMN b INT")
			must(err)
		}
		rows, err := conn.Query(ctx, "SELECT * FROM pxg")
		for err == nil && rows.Next() {
			widths = append(widths, len(rows.RawValues()))
		}
		rows.Close()
		if rows.Err() != nil {
			widths = append(widths, stateOf(rows.Err()))
		}
	}
	out["growing"] = widths
}

func copies(ctx context.Context, conn *pgx.Conn, out map[string]any) {
	_, err := conn.Exec(ctx, "CREATE TABLE pxc (a INT, v VARCHAR, t TIMESTAMP)")
	must(err)
	source := func(rows int) pgx.CopyFromSource {
		return pgx.CopyFromSlice(rows, func(n int) ([]any, error) {
			return []any{int32(n), "x", time.Unix(int64(n), 0).UTC()}, nil
		})
	}
	columns := []string{"a", "v", "t"}
	copied, err := conn.CopyFrom(ctx, pgx.Identifier{"pxc"}, columns, source(20000))
	must(err)
	out["copied"] = []int64{copied, count(ctx, conn, "SELECT count() FROM pxc")}
	var text bytes.Buffer
	_, err = conn.PgConn().CopyTo(ctx, &text, "COPY (SELECT a, v FROM pxc LIMIT 2) TO STDOUT")
	must(err)
	out["copiedOut"] = text.String()
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"pxc"}, []string{"nope"}, source(1))
	out["copyError"] = stateOf(err)
}

func cancel(ctx context.Context, conn *pgx.Conn, out map[string]any) {
	go func() {
		time.Sleep(500 * time.Millisecond)
		must(conn.PgConn().CancelRequest(ctx))
	}()
	_, err := conn.Exec(ctx, slow)
	out["cancelled"] = stateOf(err)
}
