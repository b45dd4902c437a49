// Responder is the program of a test-only container image. It answers admission reviews as a test tells it to, calls
// what a test wants called from inside a pod, and holds a pod's sandbox open.
//
// This file picks the subcommand; each of the others holds one.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes. A test must be able to tell its own mistake in the arguments from an answer it did not want, so usage has
// the code that sysexits.h gives it.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 64
)

const usage = `usage:
  responder pause
  responder serve [--http ADDR] [--tls ADDR --cert FILE --key FILE]
  responder call URL [--ca FILE] [--cert FILE --key FILE] [--method M] [--data STRING] [--timeout 5s]
                     [--repeat N --interval 1s]
`

func main() {
	// The kernel does not deliver a signal to pid 1 unless it asks for it, and in a container this is pid 1.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code instead of exiting, so that tests can run a whole command. Every command ends soon after
// ctx does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		return misused(stderr, "a subcommand is needed")
	}
	switch args[0] {
	case "pause":
		return pause(ctx, args[1:], stderr)
	case "serve":
		return serve(ctx, args[1:], stdout, stderr)
	case "call":
		return call(ctx, args[1:], stdout, stderr)
	default:
		return misused(stderr, fmt.Sprintf("unknown subcommand %q", args[0]))
	}
}

func misused(stderr io.Writer, problem string) int {
	fmt.Fprintf(stderr, "responder: %s\n%s", problem, usage)
	return exitUsage
}

func failed(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "responder: %v\n", err)
	return exitFailure
}
