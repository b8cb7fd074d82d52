package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend/gtime"
	"github.com/grafana/grafana-plugin-sdk-go/data"
	"github.com/grafana/grafana-plugin-sdk-go/data/sqlutil"
)

// fill is the fill mode that $__timeGroup requests with its third argument.
type fill struct {
	missing  *data.FillMissing
	interval time.Duration
}

// prepare replaces $__interval first, because $__timeGroup can contain it.
func prepare(query *sqlutil.Query) string {
	milliseconds := fmt.Sprint(query.Interval.Milliseconds())
	text := strings.ReplaceAll(query.RawSQL, "$__interval_ms", milliseconds)
	return strings.ReplaceAll(text, "$__interval", gtime.FormatInterval(query.Interval))
}

// source contains the driver, the macros and the types of a data source.
type source struct {
	driver string
	// options are added to the connection string.
	options    string
	macros     func(*fill) sqlutil.Macros
	converters []sqlutil.Converter
	// missing determines the values of a series at the times of other series.
	missing *data.FillMissing
}

var sources = map[string]source{
	"questdb-questdb-datasource": {
		driver:     "postgres",
		macros:     func(*fill) sqlutil.Macros { return questdbMacros },
		converters: []sqlutil.Converter{nullable("FLOAT4"), nullable("FLOAT8")},
		missing:    &data.FillMissing{Mode: data.FillModeNull},
	},
	"grafana-postgresql-datasource": {
		driver:     "pgx",
		options:    " default_query_exec_mode=simple_protocol",
		macros:     postgresqlMacros,
		converters: []sqlutil.Converter{nullable("FLOAT4"), nullable("FLOAT8")},
	},
}

// nullable returns a converter for a type of numbers.
func nullable(name string) sqlutil.Converter {
	converter := sqlutil.NullDecimalConverter
	converter.InputTypeName = name
	return converter
}

// micros returns a time as a TIMESTAMP.
func micros(at time.Time) string {
	return fmt.Sprintf("cast(%d as timestamp)", at.UnixMicro())
}

var questdbMacros = sqlutil.Macros{
	"fromTime": func(query *sqlutil.Query, _ []string) (string, error) {
		return micros(query.TimeRange.From), nil
	},
	"toTime": func(query *sqlutil.Query, _ []string) (string, error) {
		return micros(query.TimeRange.To), nil
	},
	"timeFilter": func(query *sqlutil.Query, args []string) (string, error) {
		if len(args) != 1 {
			return "", sqlutil.ErrorBadArgumentCount
		}
		from, to := micros(query.TimeRange.From), micros(query.TimeRange.To)
		return fmt.Sprintf("%s >= %s AND %s <= %s", args[0], from, args[0], to), nil
	},
	"sampleByInterval": func(query *sqlutil.Query, _ []string) (string, error) {
		switch interval := query.Interval; {
		case interval >= 24*time.Hour && interval%time.Hour == 0:
			return fmt.Sprintf("%dd", interval/(24*time.Hour)), nil
		case interval >= time.Hour:
			return fmt.Sprintf("%dh", interval/time.Hour), nil
		case interval >= time.Second:
			return fmt.Sprintf("%ds", interval/time.Second), nil
		default:
			return fmt.Sprintf("%dT", max(interval.Milliseconds(), 1)), nil
		}
	},
}

// postgresqlMacros returns macros that store the requested fill mode.
func postgresqlMacros(filled *fill) sqlutil.Macros {
	quoted := func(at time.Time) string { return "'" + at.UTC().Format(time.RFC3339Nano) + "'" }
	group := func(_ *sqlutil.Query, args []string) (string, error) {
		if len(args) < 2 {
			return "", sqlutil.ErrorBadArgumentCount
		}
		interval, err := gtime.ParseInterval(strings.Trim(args[1], "'"))
		if err != nil {
			return "", err
		}
		if len(args) > 2 {
			*filled = fill{missing: missing(args[2]), interval: interval}
		}
		seconds := interval.Seconds()
		return fmt.Sprintf("floor(extract(epoch from %s)/%v)*%v", args[0], seconds, seconds), nil
	}
	return sqlutil.Macros{
		"timeFrom": func(query *sqlutil.Query, _ []string) (string, error) {
			return quoted(query.TimeRange.From), nil
		},
		"timeTo": func(query *sqlutil.Query, _ []string) (string, error) {
			return quoted(query.TimeRange.To), nil
		},
		"timeFilter": func(query *sqlutil.Query, args []string) (string, error) {
			if len(args) != 1 {
				return "", sqlutil.ErrorBadArgumentCount
			}
			from, to := quoted(query.TimeRange.From), quoted(query.TimeRange.To)
			return fmt.Sprintf("%s BETWEEN %s AND %s", args[0], from, to), nil
		},
		"timeGroup": group,
		"timeGroupAlias": func(query *sqlutil.Query, args []string) (string, error) {
			text, err := group(query, args)
			return text + ` AS "time"`, err
		},
	}
}

// missing returns the fill mode for NULL, previous or a number.
func missing(mode string) *data.FillMissing {
	switch strings.ToLower(mode) {
	case "null":
		return &data.FillMissing{Mode: data.FillModeNull}
	case "previous":
		return &data.FillMissing{Mode: data.FillModePrevious}
	default:
		var value float64
		_, _ = fmt.Sscan(mode, &value)
		return &data.FillMissing{Mode: data.FillModeValue, Value: value}
	}
}
