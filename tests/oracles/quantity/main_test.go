package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestEveryLineIsAnswered(t *testing.T) {
	var out bytes.Buffer
	if err := answer(strings.NewReader("\"1.50\"\n\"1Ki\"\n\"x\"\n\"100m\"\n"), &out); err != nil {
		t.Fatal(err)
	}
	expected := `{"amount":"1.5","order":1}
{"amount":"1024","order":1}
{"error":"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"}
{"amount":"0.1","order":-1}
`
	if out.String() != expected {
		t.Errorf("got %s", out.String())
	}
}
