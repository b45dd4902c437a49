// Oracle answers how tools that show policy reports read ours. Each line of its input is a report as JSON, and each line of its output
// what they see in it. The types are those that such tools are compiled with: Kyverno's of wgpolicyk8s.io, of which Policy Reporter has
// the same, and those of the project OpenReports, which Policy Reporter makes of both.
//
// What a type has no field for is an error: a tool would not see it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	wgpolicy "github.com/kyverno/kyverno/api/policyreport/v1alpha2"
	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubejson "sigs.k8s.io/json"
)

type answer struct {
	Report  string        `json:"report"`
	Source  string        `json:"source,omitempty"`
	Scope   string        `json:"scope,omitempty"`
	Summary summary       `json:"summary"`
	Results []shownResult `json:"results"`
}

type summary struct {
	Pass  int `json:"pass"`
	Fail  int `json:"fail"`
	Warn  int `json:"warn"`
	Error int `json:"error"`
	Skip  int `json:"skip"`
}

type shownResult struct {
	ID       string `json:"id"`
	Source   string `json:"source"`
	Policy   string `json:"policy"`
	Rule     string `json:"rule,omitempty"`
	Result   string `json:"result"`
	Severity string `json:"severity,omitempty"`
	Category string `json:"category,omitempty"`
	Scored   bool   `json:"scored"`
	Resource string `json:"resource"`
	Message  string `json:"message"`
	Seconds  int64  `json:"seconds"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "oracle: %v\n", err)
		os.Exit(1)
	}
}

func run(in io.Reader, stdout io.Writer) error {
	out := bufio.NewWriterSize(stdout, 1<<16)
	encoder := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		seen, err := read(lines.Bytes())
		if err != nil {
			return err
		}
		if err := encoder.Encode(seen); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return out.Flush()
}

func read(text []byte) (answer, error) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(text, &kind); err != nil {
		return answer{}, err
	}
	switch kind.APIVersion + " " + kind.Kind {
	case "wgpolicyk8s.io/v1alpha2 PolicyReport":
		var report wgpolicy.PolicyReport
		err := strictly(text, &report)
		return ofPolicyReport(report.ObjectMeta, report.Scope, report.Summary, report.Results), err
	case "wgpolicyk8s.io/v1alpha2 ClusterPolicyReport":
		var report wgpolicy.ClusterPolicyReport
		err := strictly(text, &report)
		return ofPolicyReport(report.ObjectMeta, report.Scope, report.Summary, report.Results), err
	case "openreports.io/v1alpha1 Report":
		var report openreports.Report
		err := strictly(text, &report)
		return ofReport(report.ObjectMeta, report.Source, report.Scope, report.Summary, report.Results), err
	case "openreports.io/v1alpha1 ClusterReport":
		var report openreports.ClusterReport
		err := strictly(text, &report)
		return ofReport(report.ObjectMeta, report.Source, report.Scope, report.Summary, report.Results), err
	}
	return answer{}, fmt.Errorf("%s %s is no report", kind.APIVersion, kind.Kind)
}

// strictly reads as Kubernetes reads, and refuses what the type has no field for.
func strictly(text []byte, report any) error {
	unknown, err := kubejson.UnmarshalStrict(text, report)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		return fmt.Errorf("nobody reads this: %v", unknown)
	}
	return nil
}

func ofPolicyReport(metadata metav1.ObjectMeta, scope *corev1.ObjectReference, counts wgpolicy.PolicyReportSummary, results []wgpolicy.PolicyReportResult) answer {
	seen := answer{
		Report:  name(metadata),
		Scope:   reference(scope),
		Summary: summary{counts.Pass, counts.Fail, counts.Warn, counts.Error, counts.Skip},
		Results: []shownResult{},
	}
	for _, result := range results {
		seen.Results = append(seen.Results, shownResult{
			ID: result.Properties["resultID"], Source: result.Source, Policy: result.Policy, Rule: result.Rule,
			Result: string(result.Result), Severity: string(result.Severity), Category: result.Category, Scored: result.Scored,
			Resource: resource(result.Resources, scope), Message: result.Message, Seconds: result.Timestamp.Seconds,
		})
	}
	return seen
}

func ofReport(metadata metav1.ObjectMeta, source string, scope *corev1.ObjectReference, counts openreports.ReportSummary, results []openreports.ReportResult) answer {
	seen := answer{
		Report:  name(metadata),
		Source:  source,
		Scope:   reference(scope),
		Summary: summary{counts.Pass, counts.Fail, counts.Warn, counts.Error, counts.Skip},
		Results: []shownResult{},
	}
	for _, result := range results {
		seen.Results = append(seen.Results, shownResult{
			ID: result.Properties["resultID"], Source: result.Source, Policy: result.Policy, Rule: result.Rule,
			Result: string(result.Result), Severity: string(result.Severity), Category: result.Category, Scored: result.Scored,
			Resource: resource(result.Subjects, scope), Message: result.Description, Seconds: result.Timestamp.Seconds,
		})
	}
	return seen
}

func name(metadata metav1.ObjectMeta) string {
	return metadata.Namespace + "/" + metadata.Name
}

// resource is what a result is about: the first object that it names, or what the whole report is about.
func resource(named []corev1.ObjectReference, scope *corev1.ObjectReference) string {
	if len(named) > 0 {
		return reference(&named[0])
	}
	return reference(scope)
}

func reference(object *corev1.ObjectReference) string {
	if object == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s/%s %s", object.APIVersion, object.Kind, object.Namespace, object.Name, object.UID)
}
