package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestMain lets the test binary play the program, for what only a process of its own can show.
func TestMain(m *testing.M) {
	if os.Getenv("RESPONDER_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestMisuseIsToldOnStderrWithItsOwnExitCode(t *testing.T) {
	for arguments, problem := range map[string]string{
		"":                                     "a subcommand is needed",
		"bogus":                                `unknown subcommand "bogus"`,
		"pause 1":                              "pause takes no arguments",
		"serve":                                "serve needs --http, --tls or both",
		"serve --http :0 extra":                `serve does not take "extra"`,
		"serve --bogus":                        "flag provided but not defined: -bogus",
		"serve --tls :0":                       "--tls, --cert and --key need each other",
		"serve --tls :0 --cert a":              "--tls, --cert and --key need each other",
		"serve --http :0 --cert a --key b":     "--tls, --cert and --key need each other",
		"call":                                 "call needs one URL, not 0",
		"call http://a http://b":               "call needs one URL, not 2",
		"call localhost:80":                    `"localhost:80" is not an http or https URL`,
		"call http://a --cert a":               "--cert and --key need each other",
		"call http://a --repeat 0":             "--timeout and --repeat must be positive",
		"call http://a --timeout soon":         `invalid value "soon" for flag -timeout`,
		"call --interval -1s --repeat 2 http:": `"http:" is not an http or https URL`,
	} {
		t.Run(arguments, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), strings.Fields(arguments), &stdout, &stderr)
			if code != exitUsage {
				t.Errorf("exit code is %d, not %d", code, exitUsage)
			}
			if !strings.HasPrefix(stderr.String(), "responder: "+problem) || !strings.HasSuffix(stderr.String(), usage) {
				t.Errorf("stderr is %q", stderr.String())
			}
			if stdout.Len() > 0 {
				t.Errorf("stdout is %q", stdout.String())
			}
		})
	}
}
