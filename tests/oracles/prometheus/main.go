// Oracle answers how Prometheus reads expressions and files of rules, and when their alerts fire. Each line of its input is a question, and
// each line of its output the answer to it:
//
//	{"expression": "sum(rate(x_total[5m]))"}
//	{"selectors": [{"metric": "x_total", "labels": {}, "around": ["rate"]}]}
//
//	{"rules": "groups: …"}
//	{"rules": [{"name": "PortalDown", "expression": "…"}]}
//
//	{"rules": "groups: …", "series": {"portal_rules{job=\"x\"}": "1x10 _x10"}, "minutes": [5, 20]}
//	{"rules": […], "firing": [[…], [{"alert": "PortalDown", "labels": {…}, "annotations": {…}}]]}
//
// What Prometheus refuses is answered by {"errors": ["…"]}.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

type question struct {
	Expression string            `json:"expression"`
	Rules      string            `json:"rules"`
	Series     map[string]string `json:"series"`
	Minutes    []int             `json:"minutes"`
}

type answer struct {
	Errors    []string   `json:"errors,omitempty"`
	Selectors []selector `json:"selectors,omitempty"`
	Grouped   []string   `json:"grouped,omitempty"`
	Rules     []rule     `json:"rules,omitempty"`
	Firing    [][]alert  `json:"firing,omitempty"`
}

// selector is what an expression reads: a metric, the values that its labels may have, and the functions and operators around it, the
// nearest first.
type selector struct {
	Metric string              `json:"metric"`
	Labels map[string][]string `json:"labels"`
	Around []string            `json:"around"`
}

type rule struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

type alert struct {
	Alert       string            `json:"alert"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// How often rules are evaluated, and samples come.
const interval = time.Minute

var (
	language = parser.NewParser(parser.Options{})
	silent   = slog.New(slog.DiscardHandler)
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "oracle: %v\n", err)
		os.Exit(1)
	}
}

func run(in io.Reader, stdout io.Writer) error {
	out := bufio.NewWriterSize(stdout, 1<<16)
	encoder := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var asked question
		decoder := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&asked); err != nil {
			return err
		}
		reply, errs := asked.answer()
		for _, err := range errs {
			reply.Errors = append(reply.Errors, err.Error())
		}
		if err := encoder.Encode(reply); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return out.Flush()
}

func (q question) answer() (answer, []error) {
	if q.Rules == "" {
		reply, err := read(q.Expression)
		if err != nil {
			return answer{}, []error{err}
		}
		return reply, nil
	}
	groups, errs := rulefmt.Parse([]byte(q.Rules), false, model.UTF8Validation, language, silent)
	if len(errs) > 0 {
		return answer{}, errs
	}
	var reply answer
	for _, group := range groups.Groups {
		for _, found := range group.Rules {
			reply.Rules = append(reply.Rules, rule{Name: found.Alert + found.Record, Expression: found.Expr})
		}
	}
	if len(q.Minutes) == 0 {
		return reply, nil
	}
	firing, errs := q.fire()
	reply.Firing = firing
	return reply, errs
}

// read says what an expression reads, and by which labels it groups.
func read(expression string) (answer, error) {
	tree, err := language.ParseExpr(expression)
	if err != nil {
		return answer{}, err
	}
	var reply answer
	parser.Inspect(tree, func(node parser.Node, path []parser.Node) error {
		switch node := node.(type) {
		case *parser.AggregateExpr:
			reply.Grouped = append(reply.Grouped, node.Grouping...)
		case *parser.VectorSelector:
			reply.Selectors = append(reply.Selectors, selected(node, path))
		}
		return nil
	})
	return reply, nil
}

func selected(node *parser.VectorSelector, path []parser.Node) selector {
	found := selector{Metric: node.Name, Labels: map[string][]string{}, Around: []string{}}
	for _, matcher := range node.LabelMatchers {
		if matcher.Name == model.MetricNameLabel {
			continue
		}
		values := []string{matcher.Value}
		if matcher.Type == labels.MatchRegexp || matcher.Type == labels.MatchNotRegexp {
			values = matcher.SetMatches()
		}
		found.Labels[matcher.Name] = append(found.Labels[matcher.Name], values...)
	}
	for _, around := range slices.Backward(path) {
		switch around := around.(type) {
		case *parser.Call:
			found.Around = append(found.Around, around.Func.Name)
		case *parser.BinaryExpr:
			found.Around = append(found.Around, around.Op.String())
		}
	}
	return found
}

// fire evaluates the rules each minute on the series, and says which alerts fire at the minutes that are asked for. It goes the way that
// `promtool test rules` goes.
func (q question) fire() ([][]alert, []error) {
	var load strings.Builder
	fmt.Fprintf(&load, "load %s\n", model.Duration(interval))
	for series, values := range q.Series {
		fmt.Fprintf(&load, "  %s %s\n", series, values)
	}
	suite, err := promqltest.NewLazyLoader(load.String(), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		return nil, []error{err}
	}
	defer suite.Close()
	suite.SubqueryInterval = interval
	file, err := os.CreateTemp("", "rules")
	if err != nil {
		return nil, []error{err}
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString(q.Rules); err != nil {
		return nil, []error{err}
	}
	if err := file.Close(); err != nil {
		return nil, []error{err}
	}
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:  rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()),
		Appendable: suite.Storage(),
		Context:    context.Background(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Logger:     silent,
		Parser:     language,
	})
	groups, errs := manager.LoadGroups(interval, labels.EmptyLabels(), "", nil, false, file.Name())
	if len(errs) > 0 {
		return nil, errs
	}
	firing := make([][]alert, 0, len(q.Minutes))
	for minute := 0; minute <= slices.Max(q.Minutes); minute++ {
		at := time.Unix(0, 0).UTC().Add(time.Duration(minute) * interval)
		alerts := []alert{}
		suite.WithSamplesTill(at, func(err error) {
			if err != nil {
				errs = append(errs, err)
				return
			}
			for _, group := range groups {
				group.Eval(suite.Context(), at)
				for _, rule := range group.Rules() {
					if rule.LastError() != nil {
						errs = append(errs, fmt.Errorf("%s in minute %d: %w", rule.Name(), minute, rule.LastError()))
					}
					alerts = append(alerts, fires(rule)...)
				}
			}
		})
		if len(errs) > 0 {
			return nil, errs
		}
		if slices.Contains(q.Minutes, minute) {
			firing = append(firing, alerts)
		}
	}
	return firing, nil
}

func fires(of rules.Rule) []alert {
	alerting, isAlerting := of.(*rules.AlertingRule)
	if !isAlerting {
		return nil
	}
	var alerts []alert
	for _, active := range alerting.ActiveAlerts() {
		if active.State == rules.StateFiring {
			alerts = append(alerts, alert{Alert: alerting.Name(), Labels: active.Labels.Map(), Annotations: active.Annotations.Map()})
		}
	}
	slices.SortFunc(alerts, func(one, other alert) int { return strings.Compare(fmt.Sprint(one.Labels), fmt.Sprint(other.Labels)) })
	return alerts
}
