package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestPauseReapsItsChildrenAndEndsWhenAsked(t *testing.T) {
	// The shell becomes pause and leaves it two children: one that has ended by then, and one that ends later.
	command := exec.Command("/bin/sh", "-c", `true & sleep 0.3 & exec "$0" pause`, os.Args[0])
	command.Env = append(os.Environ(), "RESPONDER_MAIN=1")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer command.Process.Kill()

	processID := command.Process.Pid
	deadline := time.Now().Add(10 * time.Second)
	for {
		arguments, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", processID))
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", processID, processID))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(string(arguments), "\x00pause\x00") && len(children) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes %s were not reaped", children)
		}
		time.Sleep(10 * time.Millisecond)
	}

	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("pause ended with %v", err)
	}
}
