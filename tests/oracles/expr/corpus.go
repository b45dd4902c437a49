// Corpora: the expressions that come with expr-lang's own source.

package main

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"
)

const module = "github.com/expr-lang/expr"

// corpora are the files with expressions, and how to take them apart.
var corpora = map[string]struct {
	path  string
	split func(path string) ([]string, error)
}{
	"generated": {"testdata/generated.txt", lines},
	"fuzz":      {"test/fuzz/fuzz_corpus.txt", lines},
	"seeds":     {"test/fuzz/fuzz_expr_seed_corpus.zip", zipped},
	"docs":      {"docs/language-definition.md", blocks},
	"crowdsec":  {"testdata/crowdsec.json", list},
}

// corpus writes the expressions of one corpus. What is not UTF-8 is left out: a rule comes in YAML or JSON.
func corpus(name string, encoder *json.Encoder) error {
	chosen, known := corpora[name]
	if !known {
		return fmt.Errorf("there is no corpus %q", name)
	}
	folder, err := source()
	if err != nil {
		return err
	}
	expressions, err := chosen.split(filepath.Join(folder, filepath.FromSlash(chosen.path)))
	if err != nil {
		return err
	}
	for _, expression := range expressions {
		if !utf8.ValidString(expression) {
			continue
		}
		if err := encoder.Encode(expression); err != nil {
			return err
		}
	}
	return nil
}

// source is the folder of expr-lang's source. A program cannot embed files of another module, but it knows with which
// version of it it was built, and the module cache has that: there it was built from.
func source() (string, error) {
	cache := os.Getenv("GOMODCACHE")
	if cache == "" {
		return "", errors.New("GOMODCACHE is not set")
	}
	info, known := debug.ReadBuildInfo()
	if !known {
		return "", errors.New("the oracle does not know what it was built from")
	}
	at := slices.IndexFunc(info.Deps, func(dependency *debug.Module) bool { return dependency.Path == module })
	if at < 0 {
		return "", fmt.Errorf("the oracle was built without %s", module)
	}
	return filepath.Join(cache, filepath.FromSlash(module)+"@"+info.Deps[at].Version), nil
}

func lines(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

// zipped has one expression per file of the archive.
func zipped(path string) ([]string, error) {
	archive, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	var expressions []string
	for _, file := range archive.File {
		opened, err := file.Open()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(opened)
		opened.Close()
		if err != nil {
			return nil, err
		}
		expressions = append(expressions, string(text))
	}
	return expressions, nil
}

// blocks has the examples of a page: each block as a whole, and if it has several lines, each of them too, for many
// blocks show one expression per line.
func blocks(path string) ([]string, error) {
	page, err := lines(path)
	if err != nil {
		return nil, err
	}
	var expressions, block []string
	inside := false
	for _, line := range page {
		switch {
		case !inside:
			inside = line == "```expr"
		case strings.HasPrefix(line, "```"):
			expressions = append(expressions, strings.Join(block, "\n"))
			if len(block) > 1 {
				expressions = append(expressions, block...)
			}
			inside, block = false, nil
		default:
			block = append(block, line)
		}
	}
	return expressions, nil
}

func list(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var expressions []string
	return expressions, json.Unmarshal(text, &expressions)
}
