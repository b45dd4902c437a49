// Oracle answers what the real expr-lang makes of an expression, for tests that compare it with ours. It reads lines and
// answers each with one line of JSON, in the order in which they came.
//
// This file picks the subcommand; each of the others holds a part of one.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// Exit codes. A test must be able to tell its own mistake in the arguments from a failure, so usage has the code that
// sysexits.h gives it.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 64
)

// The longest line that is read: an expression of the largest size that we take, its environment, and room to spare.
const maxLine = 64 << 20

const usage = `usage:
  oracle answer ENV.json   expressions, one per line, with the keys of the file as names
  oracle answer -          lines of {"expr": "…", "env": {…}}
  oracle parse             expressions as JSON strings, one per line: the tree and its places, nothing is run
  oracle corpus NAME       the expressions of generated, fuzz, seeds, docs or crowdsec as JSON strings, one per line;
                           read from the module in $GOMODCACHE that the oracle was built with
  oracle bench             a line with rules and environments, answered with verdicts; then each line is a round, answered with
                           the nanoseconds of each rule
`

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run returns the exit code instead of exiting, so that what is written is flushed.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := bufio.NewWriterSize(stdout, 1<<16)
	var err error
	switch {
	case len(args) == 2 && args[0] == "answer" && args[1] == "-":
		err = eachLine(stdin, out, func(line string) (any, error) {
			question := struct {
				Expr string         `json:"expr"`
				Env  map[string]any `json:"env"`
			}{}
			if err := decode(strings.NewReader(line), &question); err != nil {
				return nil, err
			}
			return answer(question.Expr, question.Env), nil
		})
	case len(args) == 2 && args[0] == "answer":
		env, problem := readEnv(args[1])
		if problem != nil {
			err = problem
			break
		}
		err = eachLine(stdin, out, func(line string) (any, error) { return answer(line, env), nil })
	case len(args) == 1 && args[0] == "parse":
		err = eachLine(stdin, out, func(line string) (any, error) {
			var code string
			if err := json.Unmarshal([]byte(line), &code); err != nil {
				return nil, err
			}
			return parse(code), nil
		})
	case len(args) == 2 && args[0] == "corpus":
		err = corpus(args[1], newEncoder(out))
	case len(args) == 1 && args[0] == "bench":
		err = bench(stdin, out)
	default:
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	if problem := out.Flush(); err == nil {
		err = problem
	}
	if err != nil {
		fmt.Fprintf(stderr, "oracle: %v\n", err)
		return exitFailure
	}
	return exitOK
}

// eachLine answers every line that is not empty.
func eachLine(in io.Reader, out *bufio.Writer, answer func(string) (any, error)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	encoder := newEncoder(out)
	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}
		answered, err := answer(lines.Text())
		if err != nil {
			return fmt.Errorf("cannot read the line %q: %w", lines.Text(), err)
		}
		if err := encoder.Encode(answered); err != nil {
			return err
		}
	}
	return lines.Err()
}

func newEncoder(out io.Writer) *json.Encoder {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder
}
