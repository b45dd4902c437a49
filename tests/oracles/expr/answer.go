// Answers: the tree of an expression, and its value in an environment or why it has none.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// result is what expr-lang makes of one expression. Val and Err exclude each other.
type result struct {
	Expr string `json:"expr"`
	// AST is the tree as expr-lang prints it.
	AST string `json:"ast,omitempty"`
	// Places are those of the tree's nodes, in characters from the start of the source. Only in answers of parse.
	Places []int `json:"places,omitempty"`
	Val    any   `json:"val,omitempty"`
	// Phase says when Err came up: parse, compile or run; panic when expr-lang did not survive.
	Phase string `json:"phase,omitempty"`
	Err   string `json:"err,omitempty"`
	Line  int    `json:"line,omitempty"`
	// Col counts characters from 1.
	Col int `json:"col,omitempty"`
	// Quirk is set where the optimised and the plain run disagree. The answer is that of the plain one.
	Quirk bool `json:"quirk,omitempty"`
}

// parse answers with the tree alone.
func parse(code string) (answered result) {
	answered.Expr = code
	defer survive(&answered)
	tree, err := parser.Parse(code)
	if err != nil {
		answered.fail("parse", err)
		return answered
	}
	answered.AST = tree.Node.String()
	answered.Places = places(tree.Node)
	return answered
}

// answer runs the expression twice, with and without expr-lang's optimiser.
func answer(code string, env map[string]any) (answered result) {
	answered.Expr = code
	defer survive(&answered)
	tree, err := parser.Parse(code)
	if err != nil {
		answered.fail("parse", err)
		return answered
	}
	answered.AST = tree.Node.String()
	plain, phase, err := evaluate(code, env, false)
	optimised, _, optimisedErr := evaluate(code, env, true)
	if err != nil {
		answered.fail(phase, err)
	} else {
		answered.Val = encode(plain)
	}
	answered.Quirk = (err == nil) != (optimisedErr == nil) || (err == nil && !same(plain, optimised))
	return answered
}

// evaluate knows nothing about the environment beforehand: a name that it lacks is nil.
func evaluate(code string, env map[string]any, optimise bool) (value any, phase string, err error) {
	program, err := expr.Compile(code, expr.AllowUndefinedVariables(), expr.Optimize(optimise))
	if err != nil {
		return nil, "compile", err
	}
	value, err = expr.Run(program, env)
	return value, "run", err
}

func same(one, other any) bool {
	oneText, oneErr := json.Marshal(encode(one))
	otherText, otherErr := json.Marshal(encode(other))
	return oneErr == nil && otherErr == nil && string(oneText) == string(otherText)
}

func (r *result) fail(phase string, err error) {
	r.Phase, r.Err = phase, err.Error()
	var placed *file.Error
	if errors.As(err, &placed) {
		r.Err, r.Line, r.Col = placed.Message, placed.Line, placed.Column+1
	}
}

// survive turns a panic into an answer, so that one expression does not take the rest with it.
func survive(answered *result) {
	if cause := recover(); cause != nil {
		*answered = result{Expr: answered.Expr, Phase: "panic", Err: fmt.Sprint(cause)}
	}
}

func readEnv(path string) (map[string]any, error) {
	opened, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	var env map[string]any
	return env, decode(opened, &env)
}

// decode reads JSON with numbers as Kubernetes has them: int64 if they are whole, float64 otherwise.
func decode(from io.Reader, into any) error {
	decoder := json.NewDecoder(from)
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	switch decoded := into.(type) {
	case *map[string]any:
		numbers(*decoded)
	case *struct {
		Expr string         `json:"expr"`
		Env  map[string]any `json:"env"`
	}:
		numbers(decoded.Env)
	}
	return nil
}
