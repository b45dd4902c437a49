// Fixtures: the pods that come with Kubernetes' own tests.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/yaml"
)

const module = "k8s.io/pod-security-admission"

// fixture is a pod and what Kubernetes says of it.
type fixture struct {
	Level   api.Level       `json:"level"`
	Version string          `json:"version"`
	Name    string          `json:"name"`
	Passes  bool            `json:"passes"`
	Pod     json.RawMessage `json:"pod"`
}

func fixtures(out *json.Encoder) error {
	folder, err := moduleFolder()
	if err != nil {
		return err
	}
	for _, level := range levels {
		version, err := newestVersion(filepath.Join(folder, "test", "testdata", string(level)))
		if err != nil {
			return err
		}
		for _, verdict := range []string{"pass", "fail"} {
			pattern := filepath.Join(folder, "test", "testdata", string(level), version.String(), verdict, "*.yaml")
			files, err := filepath.Glob(pattern)
			if err != nil {
				return err
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				pod, err := yaml.YAMLToJSON(text)
				if err != nil {
					return err
				}
				name := strings.TrimSuffix(filepath.Base(file), ".yaml")
				if err := out.Encode(fixture{level, version.String(), name, verdict == "pass", pod}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// newestVersion returns the newest version that a folder has fixtures for.
func newestVersion(folder string) (api.Version, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return api.Version{}, err
	}
	newest := api.MajorMinorVersion(0, 0)
	for _, entry := range entries {
		version, err := api.ParseVersion(entry.Name())
		if err != nil {
			return api.Version{}, fmt.Errorf("%s is no version: %w", entry.Name(), err)
		}
		if newest.Older(version) {
			newest = version
		}
	}
	return newest, nil
}

// moduleFolder is where the source of Kubernetes' standards lies. A program cannot embed files of another module, but it
// knows with which version of it it was built, and the module cache has that: there it was built from.
func moduleFolder() (string, error) {
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
