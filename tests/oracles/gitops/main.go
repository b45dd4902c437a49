// Oracle answers how GitOps tools see objects, for tests of what we say in their status. Each line of its input is an object as JSON,
// and each line of its output is {"kstatus": "Current", "message": "…"} with, if the object's kind has a script, {"argocd": "Healthy"}.
//
// kstatus is the library that Flux and `kubectl apply` successors wait by. The scripts are those of our documentation, run as Argo CD
// runs them: by gopher-lua, with the object as the global `obj`.
//
//	oracle [GROUP_KIND=SCRIPT.lua …]
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "oracle: %v\n", err)
		os.Exit(1)
	}
}

func run(arguments []string, in io.Reader, stdout io.Writer) error {
	scripts := map[string]string{}
	for _, argument := range arguments {
		kind, path, found := strings.Cut(argument, "=")
		if !found {
			return fmt.Errorf("%s is not GROUP_KIND=SCRIPT", argument)
		}
		script, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		scripts[kind] = string(script)
	}
	out := bufio.NewWriterSize(stdout, 1<<16)
	encoder := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(lines.Bytes()); err != nil {
			return err
		}
		result, err := status.Compute(object)
		if err != nil {
			return err
		}
		answer := map[string]string{"kstatus": result.Status.String(), "message": result.Message}
		kind := object.GroupVersionKind()
		if script, found := scripts[kind.Group+"_"+kind.Kind]; found {
			health, message, err := health(script, object)
			if err != nil {
				return fmt.Errorf("%s: %w", kind.Kind, err)
			}
			answer["argocd"], answer["argocdMessage"] = health, message
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return out.Flush()
}

// health runs a script as Argo CD does unless it is told otherwise: with the base library and tables, and nothing else.
func health(script string, object *unstructured.Unstructured) (string, string, error) {
	machine := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer machine.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage,
		lua.BaseLibName: lua.OpenBase,
		lua.TabLibName:  lua.OpenTable,
	} {
		if err := machine.CallByParam(lua.P{Fn: machine.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return "", "", err
		}
	}
	machine.SetGlobal("obj", value(machine, object.Object))
	if err := machine.DoString(script); err != nil {
		return "", "", err
	}
	answer, isTable := machine.Get(-1).(*lua.LTable)
	if !isTable {
		return "", "", errors.New("the script returns no table")
	}
	said := lua.LVAsString(answer.RawGetString("status"))
	switch said {
	case "Healthy", "Progressing", "Degraded", "Suspended", "Missing":
	default:
		return "", "", fmt.Errorf("Argo CD knows no health %q", said)
	}
	return said, lua.LVAsString(answer.RawGetString("message")), nil
}

// value is a value of an object as Lua sees it.
func value(machine *lua.LState, from any) lua.LValue {
	switch from := from.(type) {
	case map[string]any:
		table := machine.NewTable()
		for name, field := range from {
			table.RawSetString(name, value(machine, field))
		}
		return table
	case []any:
		table := machine.NewTable()
		for _, element := range from {
			table.Append(value(machine, element))
		}
		return table
	case string:
		return lua.LString(from)
	case bool:
		return lua.LBool(from)
	case int64:
		return lua.LNumber(from)
	case float64:
		return lua.LNumber(from)
	default:
		return lua.LNil
	}
}
