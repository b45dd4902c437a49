// Oracle answers what Kubernetes makes of quantities, for tests that compare it with ours. It reads texts as JSON strings, one per
// line, and answers each with one line of JSON: {"amount": "0.1", "order": -1} or {"error": "…"}. The amount is a plain number;
// the order is how it compares with the last quantity before it.
//
// The modules have the versions that Kubernetes has, see tests/cluster/go.mod.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	if err := answer(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "oracle: %v\n", err)
		os.Exit(1)
	}
}

func answer(in io.Reader, stdout io.Writer) error {
	out := bufio.NewWriterSize(stdout, 1<<16)
	encoder := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	var last resource.Quantity
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			return err
		}
		quantity, err := resource.ParseQuantity(text)
		said := map[string]any{}
		if err != nil {
			said["error"] = err.Error()
		} else {
			said["amount"] = plain(quantity)
			said["order"] = quantity.Cmp(last)
			last = quantity
		}
		if err := encoder.Encode(said); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return out.Flush()
}

// plain writes an amount without an exponent and without zeros that say nothing.
func plain(quantity resource.Quantity) string {
	text := quantity.AsDec().String()
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}
