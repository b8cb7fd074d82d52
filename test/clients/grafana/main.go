// Command grafana sends the requests of Grafana's SQL data sources to a server. It reads JSON from
// standard input and prints one line of JSON with the result or error of each request.
//
// The macro engine and the conversion of rows to data frames are those of Grafana's plugin SDK, and
// the drivers are those of the data sources. The macros follow the documentation of each source.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/data"
	"github.com/grafana/grafana-plugin-sdk-go/data/sqlutil"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
)

// Input lists the requests for one data source.
type Input struct {
	// Provisioning is the text of a provisioning file.
	Provisioning string
	From, To     time.Time
	Requests     []Request
}

// Request is a query as a panel, a variable or an annotation sends it.
type Request struct {
	Name  string
	Query string
	// Format is "time_series" or "table".
	Format     string
	IntervalMS int64
}

// Answer is the data frame of a request.
type Answer struct {
	// SQL is the query after the macros were replaced.
	SQL    string
	Fields []string
	Rows   [][]any
}

const maxRows = 1_000_000

func main() {
	var input Input
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		fail(err)
	}
	source, dsn, err := connect(input.Provisioning)
	if err != nil {
		fail(err)
	}
	db, err := sql.Open(source.driver, dsn)
	if err != nil {
		fail(err)
	}
	seen := map[string]any{"health": "ok"}
	if err := db.PingContext(context.Background()); err != nil {
		seen["health"] = failure(err)
	}
	for _, request := range input.Requests {
		answer, err := ask(db, source, input, request)
		if err != nil {
			seen[request.Name] = failure(err)
			continue
		}
		seen[request.Name] = answer
	}
	text, err := json.Marshal(seen)
	if err != nil {
		fail(err)
	}
	fmt.Println(string(text))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// failure returns the message that Grafana shows, and the error's position in the query.
func failure(err error) string {
	message := err.Error()
	var ofPq *pq.Error
	var ofPgx *pgconn.PgError
	if errors.As(err, &ofPq) && ofPq.Position != "" {
		message += " at " + ofPq.Position
	} else if errors.As(err, &ofPgx) && ofPgx.Position > 0 {
		message += fmt.Sprint(" at ", ofPgx.Position)
	}
	return message
}

func ask(db *sql.DB, source source, input Input, request Request) (*Answer, error) {
	query := &sqlutil.Query{
		RawSQL:    request.Query,
		Interval:  time.Duration(request.IntervalMS) * time.Millisecond,
		TimeRange: backend.TimeRange{From: input.From, To: input.To},
	}
	query.RawSQL = prepare(query)
	filled := &fill{}
	text, err := sqlutil.Interpolate(query, source.macros(filled))
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	frame, err := sqlutil.FrameFromRows(rows, maxRows, source.converters...)
	if err != nil {
		return nil, err
	}
	if request.Format == "time_series" && frame.Rows() > 0 {
		if frame, err = series(frame, source, filled, query.TimeRange); err != nil {
			return nil, err
		}
	}
	return &Answer{SQL: text, Fields: fields(frame), Rows: values(frame)}, nil
}

// series returns one column per series, as a time series panel reads them.
func series(frame *data.Frame, source source, filled *fill, within backend.TimeRange) (
	*data.Frame, error,
) {
	if err := secondsToTime(frame); err != nil {
		return nil, err
	}
	missing := source.missing
	if filled.missing != nil {
		missing = filled.missing
	}
	if frame.TimeSeriesSchema().Type == data.TimeSeriesTypeLong {
		wide, err := data.LongToWide(frame, missing)
		if err != nil {
			return nil, err
		}
		frame = wide
	}
	if filled.missing == nil {
		return frame, nil
	}
	aligned := backend.TimeRange{From: within.From.Truncate(filled.interval), To: within.To}
	return sqlutil.ResampleWideFrame(frame, filled.missing, aligned, filled.interval)
}

// secondsToTime converts a numeric column "time", which contains seconds since 1970.
func secondsToTime(frame *data.Frame) error {
	for at, field := range frame.Fields {
		if field.Name != "time" || field.Type().Time() {
			continue
		}
		converted := data.NewField(field.Name, nil, make([]time.Time, field.Len()))
		for row := range field.Len() {
			seconds, err := field.FloatAt(row)
			if err != nil {
				return err
			}
			converted.Set(row, time.UnixMilli(int64(seconds*1000)).UTC())
		}
		frame.Fields[at] = converted
	}
	return nil
}

// fields returns the name, labels and type of each field.
func fields(frame *data.Frame) []string {
	out := make([]string, 0, len(frame.Fields))
	for _, field := range frame.Fields {
		labels := ""
		if len(field.Labels) > 0 {
			labels = "{" + field.Labels.String() + "}"
		}
		out = append(out, field.Name+labels+" "+field.Type().ItemTypeString())
	}
	return out
}

func values(frame *data.Frame) [][]any {
	out := make([][]any, 0, frame.Rows())
	for row := range frame.Rows() {
		line := make([]any, 0, len(frame.Fields))
		for _, field := range frame.Fields {
			value, _ := field.ConcreteAt(row)
			if field.NilAt(row) {
				value = nil
			}
			line = append(line, value)
		}
		out = append(out, line)
	}
	return out
}
