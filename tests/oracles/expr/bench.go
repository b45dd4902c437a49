// The bench: how long expr-lang takes for rules, as a program that uses it well would run them.

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
)

// race is what the first line asks for. Each further line asks for a round.
type race struct {
	Rules       []*contestant `json:"rules"`
	Nanoseconds int64         `json:"nanoseconds"`
}

// contestant is a rule with the environments that it is run in, all of them decoded before any time is taken.
type contestant struct {
	Expr string           `json:"expr"`
	Envs []map[string]any `json:"envs"`

	program *vm.Program
	machine vm.VM
	// How often all environments are gone through in a round.
	repeats int
}

func bench(in io.Reader, out *bufio.Writer) error {
	lines := bufio.NewReaderSize(in, 1<<16)
	first, err := lines.ReadString('\n')
	if err != nil {
		return err
	}
	asked := race{}
	decoder := json.NewDecoder(strings.NewReader(first))
	decoder.UseNumber()
	if err := decoder.Decode(&asked); err != nil {
		return err
	}
	encoder := newEncoder(out)
	verdicts := make([][]bool, len(asked.Rules))
	for i, rule := range asked.Rules {
		if verdicts[i], err = rule.prepare(time.Duration(asked.Nanoseconds)); err != nil {
			return fmt.Errorf("%s: %w", rule.Expr, err)
		}
	}
	answer := map[string]any{"verdicts": verdicts}
	for {
		if err := encoder.Encode(answer); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if _, err := lines.ReadString('\n'); err != nil {
			return nil
		}
		times := make([]float64, len(asked.Rules))
		for i, rule := range asked.Rules {
			times[i] = float64(rule.run(rule.repeats)) / float64(rule.repeats*len(rule.Envs))
		}
		answer = map[string]any{"nanoseconds": times}
	}
}

// prepare compiles with the optimiser and with the names that the environments have, and finds out how often a round has
// to repeat.
func (c *contestant) prepare(round time.Duration) ([]bool, error) {
	names := map[string]any{}
	for _, env := range c.Envs {
		numbers(env)
		for name := range env {
			names[name] = map[string]any{}
		}
	}
	var err error
	if c.program, err = expr.Compile(c.Expr, expr.Env(names), expr.AsBool()); err != nil {
		return nil, err
	}
	verdicts := make([]bool, len(c.Envs))
	for i, env := range c.Envs {
		verdict, err := c.machine.Run(c.program, env)
		if err != nil {
			return nil, err
		}
		verdicts[i] = verdict.(bool)
	}
	// The least of some runs: one that the garbage collector falls into would leave too few repeats for the whole race.
	for c.repeats = 1; min(c.run(c.repeats), c.run(c.repeats), c.run(c.repeats)) < round; c.repeats *= 2 {
	}
	return verdicts, nil
}

// run returns the processor's time, that of the garbage collector included: it is part of what an evaluation costs.
func (c *contestant) run(repeats int) time.Duration {
	begin := processorTime()
	for range repeats {
		for _, env := range c.Envs {
			if _, err := c.machine.Run(c.program, env); err != nil {
				panic(err)
			}
		}
	}
	return processorTime() - begin
}

func processorTime() time.Duration {
	const clockProcess = 2
	var spec syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockProcess, uintptr(unsafe.Pointer(&spec)), 0); errno != 0 {
		panic(errno)
	}
	return time.Duration(spec.Nano())
}
