// Pause does nothing for as long as the pod lives.

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func pause(ctx context.Context, args []string, stderr io.Writer) int {
	if len(args) > 0 {
		return misused(stderr, "pause takes no arguments")
	}

	// Signals of one kind are merged while one is pending, so one place in the channel is enough and each one received
	// may stand for many children.
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)

	// A child that ended before Notify has sent its signal already.
	reap()
	for {
		select {
		case <-ctx.Done():
			return exitOK
		case <-children:
			reap()
		}
	}
}

// reap collects every child that has ended. When containers of a pod share the process namespace, their orphans become
// children of its pid 1, and would otherwise stay as zombies until the pod has no process ids left.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
	}
}
