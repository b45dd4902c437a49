// Oracle answers how Kubernetes itself judges pods by its Pod Security Standards, for tests that compare our rules with
// it. It reads pods as JSON, one per line, and answers each with one line of JSON, in the order in which they came.
//
// This file picks the subcommand and judges; fixtures.go holds the pods that come with Kubernetes.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	kubejson "sigs.k8s.io/json"
)

// Exit codes. A test must be able to tell its own mistake in the arguments from a failure, so usage has the code that
// sysexits.h gives it.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 64
)

// The longest line that is read: no pod of a test comes near it.
const maxLine = 16 << 20

const usage = `usage:
  oracle judge      pods, one per line: the checks that each fails, per level
  oracle checks     the checks of each level
  oracle fixtures   the pods that come with Kubernetes, per level, at the newest version that has some;
                    read from the module in $GOMODCACHE that the oracle was built with
`

// The levels that ask anything of a pod.
var levels = []api.Level{api.LevelBaseline, api.LevelRestricted}

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run returns the exit code instead of exiting, so that what is written is flushed.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := bufio.NewWriterSize(stdout, 1<<16)
	var err error
	switch {
	case slices.Equal(args, []string{"judge"}):
		err = judgeLines(stdin, json.NewEncoder(out))
	case slices.Equal(args, []string{"checks"}):
		err = checks(json.NewEncoder(out))
	case slices.Equal(args, []string{"fixtures"}):
		err = fixtures(json.NewEncoder(out))
	default:
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	if problem := out.Flush(); err == nil {
		err = problem
	}
	if err != nil {
		fmt.Fprintf(stderr, "oracle: %v\n", err)
		return exitFailure
	}
	return exitOK
}

func judgeLines(in io.Reader, out *json.Encoder) error {
	evaluator, err := newEvaluator(func(result policy.CheckResult) bool { return result.Allowed })
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	for lines.Scan() {
		var pod corev1.Pod
		// The API server's own decoder: a field that it would not know is a mistake of the test.
		unknown, err := kubejson.UnmarshalStrict(lines.Bytes(), &pod)
		if err := errors.Join(append(unknown, err)...); err != nil {
			return fmt.Errorf("cannot read the pod %q: %w", lines.Text(), err)
		}
		setDefaults(&pod.Spec)
		if err := out.Encode(failed(evaluator, &pod.ObjectMeta, &pod.Spec)); err != nil {
			return err
		}
	}
	return lines.Err()
}

// setDefaults fills in what the API server has filled in before the evaluator sees a pod, as far as it changes a verdict.
func setDefaults(spec *corev1.PodSpec) {
	for i := range spec.Volumes {
		if source := &spec.Volumes[i].VolumeSource; *source == (corev1.VolumeSource{}) {
			source.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
	}
}

// checks answers with the checks that run at each level. Those that another one stands in for do not.
func checks(out *json.Encoder) error {
	evaluator, err := newEvaluator(func(policy.CheckResult) bool { return false })
	if err != nil {
		return err
	}
	return out.Encode(failed(evaluator, &metav1.ObjectMeta{}, &corev1.PodSpec{}))
}

// newEvaluator makes Kubernetes' evaluator, with checks that say who they are, which its results do not.
func newEvaluator(allows func(policy.CheckResult) bool) (policy.Evaluator, error) {
	all := policy.DefaultChecks()
	for _, check := range all {
		for i, version := range check.Versions {
			check.Versions[i].CheckPod = func(metadata *metav1.ObjectMeta, spec *corev1.PodSpec) policy.CheckResult {
				result := version.CheckPod(metadata, spec)
				return policy.CheckResult{Allowed: allows(result), ForbiddenReason: string(check.ID)}
			}
		}
	}
	return policy.NewEvaluator(all, nil)
}

// failed returns the checks that a pod fails at the latest version, per level. A level that allows it has none.
func failed(evaluator policy.Evaluator, metadata *metav1.ObjectMeta, spec *corev1.PodSpec) map[api.Level][]string {
	failed := map[api.Level][]string{}
	for _, level := range levels {
		failed[level] = []string{}
		version := api.LevelVersion{Level: level, Version: api.LatestVersion()}
		for _, result := range evaluator.EvaluatePod(version, metadata, spec) {
			if !result.Allowed {
				failed[level] = append(failed[level], result.ForbiddenReason)
			}
		}
	}
	return failed
}
