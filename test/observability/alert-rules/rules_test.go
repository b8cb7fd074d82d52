// Checks alert rules with Prometheus' own parser, and evaluates them with its engine.
//
// RULES names the rules file, INPUT a JSON file with expressions to parse and cases to evaluate, and
// OUTPUT the file for the result. A case consists of samples in promtool's notation and a time. Its
// result lists the alerts whose expression returns a value at that time.
//
//	go test -c -o alert-rules
package rules

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

type input struct {
	Expressions []string `json:"expressions"`
	Cases       []struct {
		Load string `json:"load"`
		At   string `json:"at"`
	} `json:"cases"`
}

type output struct {
	Errors []string   `json:"errors"`
	Firing [][]string `json:"firing"`
}

func TestRules(t *testing.T) {
	var given input
	result := output{Errors: []string{}, Firing: [][]string{}}
	content, err := os.ReadFile(os.Getenv("INPUT"))
	must(t, err)
	must(t, json.Unmarshal(content, &given))
	language := parser.NewParser(parser.Options{})
	groups, errors := rulefmt.ParseFile(
		os.Getenv("RULES"), false, model.UTF8Validation, language, slog.Default())
	for _, err := range errors {
		result.Errors = append(result.Errors, err.Error())
	}
	for _, expression := range given.Expressions {
		if _, err := language.ParseExpr(expression); err != nil {
			result.Errors = append(result.Errors, expression+": "+err.Error())
		}
	}
	for _, one := range given.Cases {
		at, err := time.ParseDuration(one.At)
		must(t, err)
		result.Firing = append(result.Firing, firing(t, groups, one.Load, at))
	}
	text, err := json.Marshal(result)
	must(t, err)
	must(t, os.WriteFile(os.Getenv("OUTPUT"), text, 0o600))
}

func firing(t *testing.T, groups *rulefmt.RuleGroups, load string, at time.Duration) []string {
	storage := promqltest.LoadedStorage(t, load)
	defer storage.Close()
	engine := promqltest.NewTestEngine(t, false, 0, 1_000_000)
	names := []string{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			when := time.Unix(0, 0).Add(at)
			query, err := engine.NewInstantQuery(context.Background(), storage, nil, rule.Expr, when)
			must(t, err)
			vector, err := query.Exec(context.Background()).Vector()
			must(t, err)
			if len(vector) > 0 {
				names = append(names, rule.Alert)
			}
		}
	}
	return names
}

func must(t *testing.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}
