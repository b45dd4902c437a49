// Command kubernetes is a whole Kubernetes for tests in one program: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler, kubelet, kube-proxy and kubectl, each from Kubernetes' own modules. The first argument, or the name
// that the program is called by, says which one to be.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	_ "time/tzdata" // CronJobs name time zones, and a test machine may have no zone files.

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// Exit status for a command line that cannot be understood, as in sysexits.h.
const usageError = 64

var components = map[string]func() *cobra.Command{
	"etcd":                    newEtcdCommand,
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 func() *cobra.Command { return call(kubelet.NewKubeletCommand) },
	"kubectl":                 func() *cobra.Command { return kubectl.NewDefaultKubectlCommand() },
}

func main() {
	name, arguments := filepath.Base(os.Args[0]), os.Args[1:]
	if components[name] == nil && len(arguments) > 0 {
		name, arguments = arguments[0], arguments[1:]
	}
	newCommand, ok := components[name]
	if !ok {
		names := slices.Sorted(maps.Keys(components))
		fmt.Fprintf(os.Stderr, "usage: kubernetes %s [flags]\n", strings.Join(names, "|"))
		os.Exit(usageError)
	}
	// The commands read os.Args themselves, kubectl even before cobra does.
	os.Args = append([]string{name}, arguments...)
	os.Exit(cli.Run(newCommand()))
}

// call passes a context to a constructor that takes one, which the kubelet's does from Kubernetes 1.34 on.
func call(constructor any) *cobra.Command {
	function := reflect.ValueOf(constructor)
	in := make([]reflect.Value, function.Type().NumIn())
	for i := range in {
		in[i] = reflect.ValueOf(context.Background())
	}
	return function.Call(in)[0].Interface().(*cobra.Command)
}
