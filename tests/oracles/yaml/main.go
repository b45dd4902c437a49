// Oracle answers what Kubernetes makes of YAML and JSON, for tests that compare it with ours. It reads lines and answers each
// with one line of JSON, in the order in which they came: {"value": …} or {"error": "…"}.
//
// The modules have the versions that Kubernetes has, see tests/cluster/go.mod.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"strconv"

	kubernetesjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Exit codes. A test must be able to tell its own mistake in the arguments from a failure, so usage has the code that
// sysexits.h gives it.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 64
)

// The longest line that is read: a body of the largest size that we take, encoded, and room to spare.
const maxLine = 64 << 20

const usage = `usage:
  oracle yaml   texts as JSON strings, one per line: the first document, turned into JSON and read
  oracle json   bodies in base64, one per line
`

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run returns the exit code instead of exiting, so that what is written is flushed.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	body := map[string]func(string) ([]byte, error){"yaml": fromYAML, "json": base64.StdEncoding.DecodeString}
	if len(args) != 1 || body[args[0]] == nil {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	out := bufio.NewWriterSize(stdout, 1<<16)
	err := eachLine(stdin, out, body[args[0]])
	if problem := out.Flush(); err == nil {
		err = problem
	}
	if err != nil {
		fmt.Fprintf(stderr, "oracle: %v\n", err)
		return exitFailure
	}
	return exitOK
}

func eachLine(in io.Reader, out io.Writer, body func(string) ([]byte, error)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		if err := encoder.Encode(answer(lines.Text(), body)); err != nil {
			return err
		}
	}
	return lines.Err()
}

// answer reads a body as the API server does: without a schema, whole numbers stay whole.
func answer(line string, body func(string) ([]byte, error)) map[string]any {
	text, err := body(line)
	if err == nil {
		var value any
		if err = kubernetesjson.UnmarshalCaseSensitivePreserveInts(text, &value); err == nil {
			return map[string]any{"value": encode(value)}
		}
	}
	return map[string]any{"error": err.Error()}
}

// fromYAML turns YAML into JSON as kubectl does. A panic of the parser is a refusal.
func fromYAML(line string) (body []byte, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	var text string
	if err := json.Unmarshal([]byte(line), &text); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON([]byte(text))
}

// encode writes numbers as objects with one key, so that none is taken for another: {"i":"1"}, {"f":"bits"}. Maps are
// {"m":[[key,value],…]} in the order of their keys.
func encode(value any) any {
	switch value := value.(type) {
	case int64:
		return map[string]any{"i": strconv.FormatInt(value, 10)}
	case float64:
		return map[string]any{"f": fmt.Sprintf("%016x", math.Float64bits(value))}
	case []any:
		elements := make([]any, len(value))
		for i := range value {
			elements[i] = encode(value[i])
		}
		return elements
	case map[string]any:
		keys := make([]string, 0, len(value))
		for key := range value {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		entries := make([]any, len(keys))
		for i, key := range keys {
			entries[i] = []any{key, encode(value[key])}
		}
		return map[string]any{"m": entries}
	}
	return value
}
